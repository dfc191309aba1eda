// The light engine: the paced part of engine.mjs as a small program, so that hundreds of engines leave the processor to
// the system that is measured. Called with `exec` it prints the lines of `codex exec --json`, otherwise it speaks ACP.
// Directives in the prompt: [[events COUNT BYTES]], [[pace LINES MS]], [[when FILE]]. Each output contains the time of
// its creation: microseconds of the monotonic clock, 13 digits.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MOST_INPUT (1024 * 1024)
#define MOST_PIECE (64 * 1024)

static char piece[MOST_PIECE];
static size_t filled = 0;

static void sleep_ms(long ms) {
  struct timespec rest = {ms / 1000, (ms % 1000) * 1000000};
  while (nanosleep(&rest, &rest) < 0 && errno == EINTR) {
  }
}

static long long now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void flush_piece(void) {
  for (size_t at = 0; at < filled;) {
    ssize_t written = write(1, piece + at, filled - at);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) exit(1);
    at += (size_t)written;
  }
  filled = 0;
}

static void add(const char *text) {
  size_t length = strlen(text);
  if (filled + length > sizeof piece) flush_piece();
  if (length > sizeof piece) exit(1);
  memcpy(piece + filled, text, length);
  filled += length;
}

// Prints `before`, the time, the filling and `after` for each event.
static void print_events(const char *prompt, const char *before, const char *after, int is_numbered) {
  long count = 0, bytes = 0, lines = 0, rest = 0;
  char sign[4096] = "", filling[4096] = "", line[16384];
  const char *found;
  if ((found = strstr(prompt, "[[events "))) sscanf(found, "[[events %ld %ld]]", &count, &bytes);
  if ((found = strstr(prompt, "[[pace "))) sscanf(found, "[[pace %ld %ld]]", &lines, &rest);
  if ((found = strstr(prompt, "[[when "))) sscanf(found, "[[when %4095[^]]", sign);
  long fill = bytes - 14;
  if (fill > (long)sizeof filling - 1) exit(1);
  if (fill > 0) memset(filling, 'x', (size_t)fill);
  struct stat there;
  while (sign[0] != 0 && stat(sign, &there) < 0) sleep_ms(100);
  for (long index = 0; index < count; index += 1) {
    char number[32] = "";
    if (is_numbered) snprintf(number, sizeof number, "%ld", index);
    snprintf(line, sizeof line, before, number);
    add(line);
    snprintf(line, sizeof line, "%013lld %s%s\n", now_us(), filling, after);
    add(line);
    int rests = lines > 0 && (index + 1) % lines == 0;
    if (rests || index == count - 1) flush_piece();
    if (rests) sleep_ms(rest);
  }
}

static char *read_input(void) {
  char *text = calloc(1, MOST_INPUT + 1);
  size_t length = 0;
  for (ssize_t got; length < MOST_INPUT && (got = read(0, text + length, MOST_INPUT - length)) > 0;)
    length += (size_t)got;
  return text;
}

static void make_folders(char *path) {
  for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = 0;
    mkdir(path, 0755);
    *slash = '/';
  }
}

static int play_codex(int argc, char **argv) {
  const char *last = argv[argc - 1];
  const char *prompt = strchr(last, ' ') || strncmp(last, "[[", 2) == 0 ? last : read_input();
  const char *home = getenv("CODEX_HOME");
  char thread[64], path[4096], line[512];
  unsigned long long time = (unsigned long long)now_us();
  snprintf(thread, sizeof thread, "%08llx-%04x-7%03x-8%03x-%012llx", time & 0xffffffff, (unsigned)getpid() & 0xffff,
           (unsigned)(time >> 32) & 0xfff, (unsigned)getpid() >> 16 & 0xfff, time * 2654435761 & 0xffffffffffff);
  snprintf(path, sizeof path, "%s%s/sessions/2026/01/01/rollout-2026-01-01T00-00-00-%s.jsonl",
           home ? home : getenv("HOME"), home ? "" : "/.codex", thread);
  make_folders(path);
  FILE *rollout = fopen(path, "w");
  if (!rollout) return 1;
  fprintf(rollout, "{\"type\":\"session\",\"sessionId\":\"%s\"}\n", thread);
  fclose(rollout);
  snprintf(line, sizeof line, "{\"type\":\"thread.started\",\"thread_id\":\"%s\"}\n{\"type\":\"turn.started\"}\n", thread);
  add(line);
  flush_piece();
  print_events(prompt,
               "{\"type\":\"item.completed\",\"item\":{\"id\":\"item_%s\",\"type\":\"agent_message\",\"text\":\"",
               "\"}}", 1);
  add("{\"type\":\"item.completed\",\"item\":{\"id\":\"item_end\",\"type\":\"agent_message\",\"text\":\"done\"}}\n");
  add("{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":1,\"cached_input_tokens\":0,\"output_tokens\":1}}\n");
  flush_piece();
  return 0;
}

// The value of a field with a string or a number, as it is written.
static void value_of(const char *line, const char *name, char *value, size_t size) {
  value[0] = 0;
  const char *found = strstr(line, name);
  if (!found) return;
  found += strlen(name);
  size_t length = *found == '"' ? strcspn(found + 1, "\"") + 2 : strcspn(found, ",}");
  if (length < size) {
    memcpy(value, found, length);
    value[length] = 0;
  }
}

static int play_acp(void) {
  char *line = NULL, id[128], method[128], session[128], before[1024], answer[1024];
  size_t size = 0;
  while (getline(&line, &size, stdin) > 0) {
    value_of(line, "\"id\":", id, sizeof id);
    value_of(line, "\"method\":", method, sizeof method);
    const char *result = "{}";
    if (strcmp(method, "\"initialize\"") == 0)
      result = "{\"protocolVersion\":1,\"agentCapabilities\":{\"loadSession\":true,\"promptCapabilities\":{}},"
               "\"authMethods\":[]}";
    if (strcmp(method, "\"session/new\"") == 0) result = "{\"sessionId\":\"7f1c2a52-0000-4000-8000-000000000001\"}";
    if (strcmp(method, "\"session/prompt\"") == 0) {
      value_of(line, "\"sessionId\":", session, sizeof session);
      snprintf(before, sizeof before,
               "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":%s,\"update\":"
               "{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"%%s",
               session);
      print_events(line, before, "\"}}}}", 0);
      result = "{\"stopReason\":\"end_turn\"}";
    }
    if (id[0] == 0) continue;
    snprintf(answer, sizeof answer, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n", id, result);
    add(answer);
    flush_piece();
  }
  return 0;
}

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "--version") == 0) {
    puts("codex-cli 0.166.0");
    return 0;
  }
  if (argc > 1 && strcmp(argv[1], "exec") == 0) return play_codex(argc, argv);
  return play_acp();
}
