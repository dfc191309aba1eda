// The messages of the rest of the program in Simplified Chinese, by their keys: findings of checks, damage of stored
// data, and what is known about the programs of engines. Terms: see zh-cn.ts.
import type { FINDINGS } from '../../audit/findings.js';
import type { DAMAGE_TEXTS } from '../../kernel/damage-texts.js';
import type { POST_TEXTS } from '../../hooks/post.js';
import type { Translation } from '../../kernel/message.js';
import type { PROBE_TEXTS } from '../../machine/programs/probe-engine.js';
import type { QUERY_TEXTS } from '../../machine/programs/query-program.js';
import type { RunState } from '../../run/statechart.js';
import type { AUDIT_PROBLEMS } from '../../store/audit.js';

type Translated<T> = Readonly<Record<keyof T, string>>;

const FINDINGS_ZH: Translated<typeof FINDINGS> = {
  'digest.passed': '{digest}',
  'digest.differs': '已存储事件的摘要为 {found}，但运行记录中是 {stored}',
  'journal.not_json': '事件 {event} 不是 JSON',
  'journal.form': '存储的数据格式异常（{reason}）',
  'order.passed': '{events} 个事件，无缺失',
  'order.gap': '事件 {before} 之后不是本运行的事件 {event}',
  'order.time': '事件 {event} 的时间早于前一个事件',
  'order.count':
    '事件日志中有 {rasp} 个 RASP 事件和 {fcmp} 个 FCMP 事件，但运行记录中分别是 {rasp_row} 个和 {fcmp_row} 个',
  'form.passed': '所有事件都符合 rasp/1.0',
  'form.event': '事件 {event} 不符合 rasp/1.0：{problem}',
  'chart.change': '1 次状态变化',
  'chart.changes': '{count} 次状态变化',
  'chart.ended': '{changes}，最终状态：{state}',
  'chart.now': '{changes}，当前状态：{state}',
  'chart.step': '事件 {event}：状态图中，状态 {state} 下没有“{from} → {to}（{trigger}）”这一步',
  'chart.state': '按事件推算的状态是“{state}”，但运行记录中是“{row}”',
  'chart.error': '运行记录中的错误与最后一个相关事件不符',
  'chart.result': '运行记录中的结果与最后一个相关事件不符',
  'rows.passed': '数据库与事件一致（{questions} 个问题）',
  'rows.passed_one': '数据库与事件一致（1 个问题）',
  'rows.not_created': '没有事件记录该运行的创建',
  'rows.request': '运行记录中的请求与第一个事件不符',
  'rows.wait_policy': '运行的等待策略与第一个事件不符',
  'rows.request_id': '运行的请求 ID 是 {row}，但第一个事件中是 {event}',
  'rows.turn': '运行记录显示第 {row} 轮，但事件显示第 {events} 轮',
  'rows.owners': '运行先后有 {owners} 个所有者，但事件显示开始了 {turns} 轮',
  'rows.cancel': '运行的取消请求与对应的事件不符',
  'rows.last_event': '最后一个事件的时间是 {event}，但运行记录中是 {row}',
  'rows.fork_home': '复制的对话不在来源运行 {run} 的主目录中',
  'rows.fork_session': '复制的会话 {session} 从不属于来源运行 {run}',
  'rows.stray_question': '问题 {question} 没有对应的事件',
  'rows.missing_question': '缺少问题 {question}',
  'rows.question': '问题 {question}：{problem}',
  'rows.waited': '各问题共等待了 {waited} 毫秒，但运行记录中是 {row} 毫秒',
  'rows.session': '会话与事件中的不符',
  'rows.session_missing': '缺少各问题所属的会话',
  'rows.session_other': '会话属于另一个引擎、文件夹或主目录',
  'rows.session_type': '此运行不可能有 {type} 类型的会话',
  'rows.session_unknown': '引擎从未报告过会话 {session}',
  'rows.session_turn': '会话始于第 {turn} 轮，而不是第 {row} 轮',
  'rows.counts': '各轮的计数与事件不符',
  'question.text': '文字或选项与对应的事件不符',
  'question.turn': '是在第 {turn} 轮提出的，而不是第 {row} 轮',
  'question.time': '提问时间与事件中的 {time} 不符',
  'question.deadline': '截止时间与运行的超时设置不符',
  'question.decides': '超时后的处理方式与运行的设置不符',
  'question.state': '状态为 {row}，但按事件应为 {state}',
  'question.answer_early': '仍在等待回答，却已有回答',
  'question.answer': '回答与记录的事件不符',
  'question.answer_time': '回答时间与事件中的 {time} 不符',
  'segments.after': '{journal}：第 {line} 行之后的片段编号为 {from} 到 {to}',
  'segments.lines': '{journal}：有 {lines} 行的片段编号为 {from} 到 {to}',
  'segments.time': '{journal}：第 {line} 行的时间不在所属片段的时间范围内',
  'hashes.passed': '{bytes} 字节的日志未被改动',
  'hashes.passed_lost': '{passed}；{lost}',
  'hashes.lost': '无法检查第 {turns} 轮的日志：哈希尚未记录，主机就失联了',
  'hashes.unreadable': '第 {turn} 轮 {stream}：{problem}',
  'hashes.not_measured': '未测量该日志',
  'hashes.size': '第 {turn} 轮 {stream}：日志有 {size} 个字节，但当时读取了 {read} 个',
  'hashes.altered': '第 {turn} 轮 {stream}：日志被改动过',
  'cover.passed': '全部 {bytes} 个字节都有对应的事件',
  'cover.holes':
    '第 {turn} 轮 {stream}：事件覆盖了 {size} 个字节中的 {covered} 个，有 {holes} 处遗漏、{overlaps} 处重叠',
  'cover.stray': '事件 {event} 引用了所属轮次没有读取的字节',
  'cover.gap': '第 {turn} 轮 {stream}：起始字节没有紧接上一轮的末尾',
  'conversation.passed': '{events} 个事件；根据事件日志重建的结果逐字节一致',
  'conversation.differs': '根据事件日志重建的对话从事件 {event} 起与存储的对话不同',
  'files.passed': 'rasp.jsonl 和 fcmp.jsonl 与数据库一致',
  'files.live': '运行正在排队或进行，未作比较',
  'files.differ': '{file} 与数据库不一致：因崩溃被截断，或被改动过',
  'result.none': '该运行没有结果文件',
  'result.passed': '{file} 未被改动',
  'result.altered': '{file} 被改动过',
  'result.missing': '缺少 {file}',
};

const STATES_ZH: Readonly<Record<`state.${RunState}`, string>> = {
  'state.queued': '排队中',
  'state.running': '运行中',
  'state.waiting_user': '等待你回答',
  'state.succeeded': '成功',
  'state.failed': '失败',
  'state.canceled': '已取消',
};

const DAMAGE_ZH: Translated<typeof DAMAGE_TEXTS> = {
  'damage.not_json': '{what} 不是 JSON：{reason}',
  'damage.row': '数据库中的一行：{reason}',
  'damage.of': '{owner} 的 {column}',
  'damage.run': '运行 {run}',
  'damage.question': '运行 {run} 的问题 {question}',
  'damage.turn': '运行 {run} 第 {turn} 轮',
  'damage.delivery': '投递 {delivery}',
  'damage.request': '请求 {request}',
  'damage.empty': '{what} 为空',
  'damage.not_number': '{what} 不是数字',
  'damage.not_time': '{what} 不是时间',
  'damage.not_text': '{what} 不是文本',
  'damage.not_run_id': '{what} 不是运行 ID',
  'damage.none_of': '{what} 不是 {all} 中的任何一个',
  'damage.form': '{what} 的格式与写入时不同',
  'damage.other_request': '{what} 与请求中的不符',
  'damage.too_large': '运行 {run} 中有一个数字过大。请先删除该运行：parley rm {run}',
  'damage.not_bytes': '事件日志的一个片段不是字节数据',
  'damage.not_unpacked': '事件日志的一个片段无法解压',
  'damage.size': '事件日志的一个片段有 {bytes} 个字节，应为 {expected} 个',
  'damage.missing_events': '事件日志中缺少事件 {from} 到 {to}',
  'damage.missing_of_run': '运行 {run} 的事件日志中缺少 {journal} 事件 {from} 到 {to}',
  'damage.piece_count': '事件日志中事件 {from} 到 {to} 的片段有 {count} 个事件，应为 {expected} 个',
  'damage.piece_end': '事件日志中事件 {from} 到 {to} 的片段在最后一个事件之后还有内容',
  'damage.flush_ends': '包含事件 {from} 到 {to} 的段没有说明各次写入在哪里结束',
  'damage.group_form': '其描述与写入时的格式不符',
  'damage.group_content': '其中没有描述所说的运行 {run} 的事件',
  'damage.group_order': '其中的事件与运行 {run} 的事件日志不连续',
  'damage.group': '最近事件的第 {group} 组：{problem}',
  'damage.piece': '{journal} 事件 {from} 到 {to}：{problem}',
  'damage.missing': '事件日志中缺失',
  'damage.line_not_json': '不是 JSON',
  'damage.other_event': '该位置存储的是另一个事件',
  'damage.several': '事件日志中连续 {count} 处损坏',
};

const AUDIT_ZH: Translated<typeof AUDIT_PROBLEMS> = {
  'audit.no_head': '缺少末尾标记：末尾的记录可能已被删除',
  'audit.before_first': '记录 {row} 排在第一条之前',
  'audit.missing': '缺少记录 {row}',
  'audit.missing_of': '缺少记录 {row}：末尾标记显示共有 {count} 条',
  'audit.break': '记录 {row} 注明日志曾经中断：{body}',
  'audit.changed': '记录 {row} 或它的前一条被修改过',
  'audit.other_head': '记录 {row} 与末尾标记不符',
  'audit.beyond_head': '记录 {row} 超出末尾标记：标记显示共有 {count} 条',
};

const PROBE_ZH: Translated<typeof PROBE_TEXTS & typeof QUERY_TEXTS> = {
  'probe.not_found': '找不到 {program}：{install}',
  'probe.other_version': '版本 {version} 未经解析器验证（已验证的版本：{proved}）',
  'probe.failed': '{command} {problem}',
  'probe.no_version': '{command} 没有输出版本号：是正确的程序吗？',
  'probe.resume_unknown': '无法确定能否继续对话：{failure}',
  'probe.no_resume': '不能继续对话：{command} 中没有相应的用法',
  'query.not_started': '无法启动：{reason}',
  'query.interrupted': '被中断',
  'query.endless': '不停地输出',
  'query.silent': '在 {seconds} 秒内没有响应',
  'query.code': '退出码 {code}',
  'query.ended': '异常结束（{how}）',
  'query.complained': '异常结束（{how}）：{complaint}',
};

const POST_ZH: Translated<typeof POST_TEXTS> = {
  'post.late': '{seconds} 秒内没有响应',
};

// How an engine is installed or logged in to, where that is more than a command.
const ENGINES_ZH: Readonly<Record<string, string>> = {
  'install.iflow': 'iFlow CLI 已停止分发；请用 PARLEY_IFLOW_BIN 指定已安装的程序',
  'install.rehearsal': '随 Parley 提供，由 npm run build 生成',
  'login.claude': '启动一次 claude 并登录，或设置 ANTHROPIC_API_KEY',
  'login.codex': 'codex login，或设置 CODEX_API_KEY',
  'login.codex-app-server': 'codex login，或设置 CODEX_API_KEY',
  'login.gemini': '启动一次 gemini 并登录，或设置 GEMINI_API_KEY',
  'login.iflow': '启动一次 iflow 并登录',
};

export const CHINESE_MESSAGES: Translation = {
  templates: { ...FINDINGS_ZH, ...STATES_ZH, ...DAMAGE_ZH, ...AUDIT_ZH, ...PROBE_ZH, ...POST_ZH, ...ENGINES_ZH },
  separator: '、',
};
