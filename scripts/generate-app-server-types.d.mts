export function buildProtocolTypes(): string;
