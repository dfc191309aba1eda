// What the server may say without content for the conversation, by the types that it prints of itself
// (`codex app-server generate-ts`, 0.166.0): known and passed over, where any other name is drift.

// Notifications that only say how far it is. Those with content have a rule of their own.
export const STEPS: readonly string[] = [
  'thread/started', 'thread/status/changed', 'thread/readState/changed', 'thread/archived', 'thread/deleted', 'thread/unarchived', 'thread/closed', 'thread/reverted',
  'skills/changed', 'thread/name/updated', 'thread/attachment/updated', 'thread/goal/updated', 'thread/prediction/updated', 'thread/goal/cleared',
  'thread/queue/changed', 'project/changed', 'thread/project/updated', 'thread/environment/connected', 'thread/environment/disconnected', 'thread/settings/updated',
  'hook/started', 'hook/completed', 'turn/diff/updated', 'item/autoApprovalReview/started', 'item/autoApprovalReview/completed',
  'autoApprovalReview/strictReviewRequired', 'rawResponseItem/completed', 'rawResponse/completed', 'item/plan/delta', 'command/exec/outputDelta', 'process/outputDelta',
  'process/exited', 'item/commandExecution/terminalInteraction', 'item/fileChange/outputDelta', 'item/mcpToolCall/progress', 'mcpServer/oauthLogin/completed',
  'mcpServer/startupStatus/updated', 'mcpServer/event/stream/notification', 'account/updated', 'account/gatewayOAuth/changed', 'account/rateLimits/updated',
  'app/list/updated', 'remoteControl/status/changed', 'externalAgentConfig/import/progress', 'externalAgentConfig/import/completed', 'fs/changed',
  'item/reasoning/summaryTextDelta', 'item/reasoning/summaryPartAdded', 'item/reasoning/textDelta', 'thread/compacted', 'model/rerouted', 'model/verification',
  'modelProvider/authRecoveryStarted', 'modelProvider/authRecoveryCompleted', 'turn/moderationMetadata', 'model/safetyBuffering/updated',
  'fuzzyFileSearch/sessionUpdated', 'fuzzyFileSearch/sessionCompleted', 'thread/realtime/started', 'thread/realtime/itemAdded', 'thread/realtime/item/started',
  'thread/realtime/item/transcript/delta', 'thread/realtime/item/completed', 'thread/realtime/transcript/delta', 'thread/realtime/transcript/done',
  'thread/realtime/outputAudio/delta', 'thread/realtime/sdp', 'thread/realtime/error', 'thread/realtime/closed', 'windows/worldWritableWarning',
  'windowsSandbox/setupCompleted', 'account/login/completed',
];

// What it asks of its client. Which of it a person is asked, `requests.ts` says.
export const REQUESTS: readonly string[] = [
  'item/commandExecution/requestApproval', 'item/fileChange/requestApproval', 'item/tool/requestUserInput', 'mcpServer/elicitation/request',
  'item/permissions/requestApproval', 'item/tool/call', 'account/chatgptAuthTokens/refresh', 'attestation/generate', 'currentTime/read', 'applyPatchApproval',
  'execCommandApproval',
];

// Items that are neither said nor done by the agent, or that no event tells of.
export const SILENT_ITEMS: readonly string[] = [
  'userMessage', 'hookPrompt', 'functionCallOutput', 'subAgentActivity', 'imageView', 'sleep', 'imageGeneration', 'enteredReviewMode', 'exitedReviewMode',
  'contextCompaction',
];

// Items that are calls of a tool: while one of them is open, the agent waits for it.
export const TOOL_ITEMS: ReadonlySet<string> = new Set(['commandExecution', 'fileChange', 'mcpToolCall', 'dynamicToolCall', 'collabAgentToolCall', 'webSearch']);
