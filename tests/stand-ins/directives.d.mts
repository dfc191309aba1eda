export type Step =
  | { readonly type: 'answer'; readonly text: string }
  | { readonly type: 'ask'; readonly question: string; readonly options: readonly string[] }
  | { readonly type: 'done'; readonly result: unknown }
  | { readonly type: 'tool'; readonly command: string }
  | { readonly type: 'file'; readonly name: string }
  | { readonly type: 'events'; readonly count: number; readonly bytes: number }
  | { readonly type: 'sleep'; readonly ms: number }
  | { readonly type: 'stderr'; readonly lines: number }
  | { readonly type: 'fail' | 'crash' | 'hang' | 'exit0' | 'nosession' | 'othersession' | 'refuse' | 'orphan' | 'utf8' };

export function parseDirectives(prompt: string): Step[];
