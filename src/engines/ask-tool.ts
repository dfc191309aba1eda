// Our question tool, under the names that engines give it: server.tool, mcp_server_tool, server_tool.

export function isAskTool(name: string): boolean {
  return /(?:^|[._])ask_human$/.test(name);
}
