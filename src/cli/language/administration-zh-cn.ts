// The texts of administration-en.ts in Simplified Chinese. Terms: see zh-cn.ts.
import type { Texts } from './en.js';

export const DOCTOR: Texts['doctor'] = {
  and: '，',
  names: '、',
  next: '；',
  andMore: (count) => `另有 ${count} 个`,
  version: (version, node, platform) => `${version}，Node ${node}，${platform}`,
  free: (size) => `剩余空间 ${size}`,
  otherDirectory: '请用 --data 或 PARLEY_DATA 换一个目录',
  notADirectory: (path, advice) => `${path} 不是目录；${advice}`,
  notWritable: (path, advice) => `${path} 无法写入；${advice}`,
  ownRuns: (path, free) => `${path}，${free}；其中的运行不在数据库中，可用 parley import 复制过去`,
  lostDatabase: (path, folders, database, restore) => `${path} 中有 ${folders} 个运行文件夹，但${database}。${restore}`,
  databaseEmpty: ' parley.db 是空的',
  databaseMissing: '没有 parley.db',
  nothingYet: (path, free) => `${path}（尚无内容），${free}`,
  waiting: (count) => `${count} 个问题等你回答`,
  overdue: (count) => `其中 ${count} 个已超时`,
  served: (address) => `服务器地址 ${address}`,
  writing: (pid) => `进程 ${pid} 正在写入`,
  database: (name, version, schema) => `${name}（PostgreSQL ${version}，表结构版本 ${schema}）`,
  noHost: '没有正在运行的主机：可用 parley serve 启动一台',
  host: (name, time) => `${name}，自 ${time} 起运行`,
  unreadableAddress: '地址无法解析',
  hostsDiffer: (setting, values, advice) => `正在运行的主机的 ${setting} 不一致：${values}；${advice}`,
  valueOf: (value, hosts) => `${value}（${hosts}）`,
  namesAndMore: (names, count) => `${names} 等另外 ${count} 台`,
  setTheSame: '请在各主机的 config.json 中设为相同的值',
  theirVersion: 'Parley 版本',
  updateThem: '请更新到相同的版本',
  noDamage: (checked) => `未发现损坏：${checked}`,
  damage: (damaged, runs, list, waysOut, checked) =>
    `${runs} 个运行中有 ${damaged} 个已损坏：${list}。${waysOut}；${checked}`,
  damagedGroups: (list) =>
    `正在运行的轮次的事件已损坏：${list}。轮次结束时，Parley 会从引擎日志重新读取这些事件。已损坏的记录会保留。`,
  totalsUnchecked: (runs) => `未将指标总数与 ${runs} 个运行比较：--full 会比较`,
  wrongTotal: (name, total, counted) => `${name}：${total}，应为 ${counted}`,
  wrongTotals: (list) => `指标总数与存储的运行不一致：${list}。请停止服务器并重新统计：parley doctor --recount`,
  damagedRun: (run, damage) => `${run}（${damage}）`,
  check: (name, finding) => `${name}：${finding}`,
  waysOut:
    '请保存其中仍可读取的内容（parley show、parley watch --json、parley logs；通过服务器：GET /v1/runs/ID/archive），' +
    '从备份恢复（docs/guides/backup-and-restore.md），或删除这些运行（parley rm）',
  checkedFull: (runs) => `已检查全部 ${runs} 个运行及其事件日志和文件`,
  checkedFullButElsewhere: (runs, elsewhere) =>
    `已检查全部 ${runs} 个运行及其事件日志和文件（其中 ${elsewhere} 个的文件在其他主机上或已不存在，未检查）`,
  checkedEnds: (runs) => `已检查全部 ${runs} 个运行及其事件日志的末尾；--full 检查全部内容`,
  checkedSome: (runs, total) => `已检查 ${total} 个运行中最新的 ${runs} 个及其事件日志的末尾；--full 检查全部内容`,
  digestDiffers: '事件与摘要不符',
  integrityUnchecked: (size) => `未检查 parley.db（${size}）：--full 会检查，可能需要几分钟`,
  integrityOk: (size) => `parley.db（${size}）结构完好`,
  integrityBroken: (problems) =>
    `parley.db 已损坏：${problems}。请停止 Parley 并从备份恢复，或用 sqlite3 parley.db .recover 抢救数据`,
  auditAltered: (problem) => `管理日志被改动过：${problem}。检查全部记录：parley audit --verify`,
  openToOthers: (path, found) =>
    `${path}：${found}。请使用只供 Parley 使用的目录，并禁止其他用户访问：chmod -R go= DIRECTORY`,
  writtenByOthers: (name) => `其他用户可以写入 ${name}，从而以你的身份启动程序`,
  directoryWrittenByOthers: '其他用户可以写入此目录，从而以你的身份启动程序',
  readByOthers: (name) => `其他用户可以访问 ${name}`,
  notAProgram: (place) => `${place} 不是程序`,
  unknownVersion: '版本未知',
  engine: (version, place) => `${version}（${place}）`,
  bundled: '自带',
  loggedIn: (place) => `已登录（${place}）`,
  continues: '可以继续对话',
  loggedOut: (advice) => `未登录：${advice}`,
};

export const DEMO: Texts['demo'] = {
  kept: (path) => `所有内容保留在 ${path}：parley show last --data ${path}`,
  start: '启动一个智能体，它工作一会儿后提出问题。',
  started: (run, pid) => `${run}，由进程 ${pid} 调度`,
  waiting: (processes) => `等待中：智能体有 ${processes} 个进程`,
  kill: (pid) => `杀掉调度进程：kill -9 ${pid}`,
  killed: '进程已被杀掉，没有机会做任何收尾',
  restart: '启动新的调度进程。问题仍在。',
  restarted: (pid, question) => `进程 ${pid} 找到了问题：${question}`,
  answer: (option) => `现在回答，也可以是一周以后：${option}。新的进程继续同一段对话。`,
  turn: (turn, pid, session) => `第 ${turn} 轮：进程 ${pid}，会话 ${session}`,
  unknownSession: '未知',
  proof: '发生的一切都可以验证。',
  tryIt: (command) => `自己试试：${command} run rehearsal "Set up the storage"`,
};

export const IMPORT: Texts['import'] = {
  progress: (done, total) => `已复制 ${done}/${total} 个运行`,
  copied: (count, database) => `已将 ${count} 个运行复制到 ${database}`,
  copiedButKnown: (count, database, known) => `已将 ${count} 个运行复制到 ${database}，另有 ${known} 个先前已复制`,
  more: (count) => `另有 ${count} 个`,
  names: '、',
};

export const MIGRATE: Texts['migrate'] = {
  ready: '数据库已准备好',
  oldJobs: (count) => `已从 graphile_worker 模式中删除旧版 Parley 的 ${count} 个任务。`,
  otherTasks: (tasks) => `其他程序正在使用此模式（任务：${tasks}），请保留它。`,
  names: '、',
  unused: (jobs) =>
    `${jobs}Parley 已不再使用此模式。\n确认没有其他程序使用它，并且旧版 Parley 不会再使用此数据库之后，可以删除它：`,
};

export const COMPACT: Texts['compact'] = {
  packing: (done, total) => `已压缩 ${done}/${total} 个运行`,
  rewriting: '正在重写数据库',
  done: (before, after) => `数据库原有 ${before}，现有 ${after}。`,
  damaged: (runs) => `以下运行的事件日志已损坏，未能完全压缩：${runs}。详细信息：parley doctor --full`,
  heldUp: '另一个进程仍在读取数据库。等它结束且 Parley 再次写入该目录后，文件才会变小。',
  more: (count) => `另有 ${count} 个`,
  names: '、',
};

export const AUDIT: Texts['audit'] = {
  empty: '管理日志是空的。',
  unchanged: '未被改动',
  changed: '已被改动',
  rows: (word, rows) => `${word}：管理日志共 ${rows} 条记录`,
  problem: (word, problem) => `${word}：${problem}`,
  noHead: '管理日志缺少末尾标记。请检查：parley audit --verify',
  noRowAfter: (row, last) => `${row} 之后没有记录：最后一条是 ${last}。`,
};

export const WEBHOOK: Texts['webhook'] = {
  none: '无',
  delivered: (name) => `已投递到“${name}”`,
  notDelivered: (name, problem) => `未能投递到“${name}”：${problem}`,
};

export const STOP: Texts['stop'] = {
  interrupted: (work) => `已中断${work}。`,
  turns: (count) => ` ${count} 个正在运行的轮次`,
  queued: (count) => ` ${count} 个排队中的运行`,
  both: (turns, queued) => `${turns}和${queued}`,
  queuedStay: '排队中的运行保持排队。',
  keepQueued: '要保留排队中的运行，请在 config.json 中把 recovery.queued 设为 "requeue"。',
  repeated: '下次启动时会以新的运行重复被中断的运行。',
  repeat: '要重复被中断的运行，请在 config.json 中把 recovery.running 设为 "retry"。',
  between: '',
};
