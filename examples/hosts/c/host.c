/* A host in C: one run for TEXT, with a tool that a person has to allow. LSP's framing, over pipes; one poll loop. */
#define _POSIX_C_SOURCE 200809L
#include "wire.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define INITIALIZE \
    "{\"initializationOptions\": {\"sidecar\": {" \
    "  \"protocolVersions\": [1], \"features\": {\"approvals\": {}}}}}"
#define CREATE_SESSION \
    "{\"model\": \"scripted:model.toml\", \"tools\": [{" \
    "  \"name\": \"save_note\", \"description\": \"Keep a note.\", \"approvalMode\": \"always_require\"," \
    "  \"inputSchema\":" \
    "    {\"type\": \"object\", \"properties\": {\"text\": {\"type\": \"string\"}}, \"required\": [\"text\"]}}]}"

enum id { INITIALIZED = 1, CREATED, RAN, CANCELLED, SHUT_DOWN };

static struct {
    struct wire wire;
    const char *text;
    char session[64];
    cJSON *questions; /* requests for consent; the first one is being asked */
    char said[3];     /* the beginning of what the person says to it */
    bool yes, asking, mid_line, running, interrupted, over;
    int status; /* the exit code */
} host = {.status = 1};

static int interrupts[2];

static void interrupt(int number)
{
    (void)number;
    if (write(interrupts[1], "", 1) < 0)
        abort();
}

/* A member, or NULL. */
static cJSON *get(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

/* A member that is text, or "". */
static const char *text_of(const cJSON *object, const char *name)
{
    const char *text = cJSON_GetStringValue(get(object, name));
    return text ? text : "";
}

/* What a terminal obeys, or does not show: controls, directions, what has no width. */
static bool obeyed(unsigned code)
{
    return (code < ' ' && code != '\n' && code != '\t') || (0x7f <= code && code <= 0x9f) || code == 0xad ||
           code == 0x61c || code == 0x180e || (0x200b <= code && code <= 0x200f) ||
           (0x2028 <= code && code <= 0x202e) || (0x2060 <= code && code <= 0x206f) || code == 0xfeff ||
           (0xfff9 <= code && code <= 0xfffb) || (0xe0000 <= code && code <= 0xe007f);
}

/* Text, the caller's to free. */
static char *format(const char *pattern, ...)
{
    va_list arguments;
    va_start(arguments, pattern);
    size_t room = (size_t)vsnprintf(NULL, 0, pattern, arguments) + 1;
    va_end(arguments);
    char *text = malloc(room);
    if (!text)
        abort();
    va_start(arguments, pattern);
    vsnprintf(text, room, pattern, arguments);
    va_end(arguments);
    return text;
}

/* Prints text, and frees it. A model wrote it: what could hide, or move the cursor, is shown by the number of its
   bytes; to a person who consents, everything that is not ASCII. */
static void show(FILE *file, char *text, bool consent)
{
    for (const unsigned char *next = (unsigned char *)text; *next;) {
        const unsigned char *start = next;
        unsigned code = *next++;
        int more = code >= 0xf0 ? 3 : code >= 0xe0 ? 2 : code >= 0xc0; /* bytes of UTF-8 */
        for (code &= more ? 0x3fu >> more : 0xff; more && (*next & 0xc0) == 0x80; more--)
            code = code << 6 | (*next++ & 0x3f);
        bool hidden = consent ? code < ' ' || '~' < code : obeyed(code);
        for (; start < next; start++)
            fprintf(file, hidden ? "\\x%02x" : "%c", *start);
    }
    free(text);
}

/* Makes a new id. What it names can be sent again, and is carried out once. */
static void mint(char id[64])
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(id, 64, "%ld-%lld-%ld", (long)getpid(), (long long)now.tv_sec, now.tv_nsec);
}

static void request(enum id id, const char *method, cJSON *params)
{
    cJSON *message = cJSON_CreateObject();
    cJSON_AddNumberToObject(message, "id", id);
    cJSON_AddStringToObject(message, "method", method);
    cJSON_AddItemToObject(message, "params", params);
    wire_send(&host.wire, message);
}

static cJSON *in_session(void)
{
    cJSON *params = cJSON_CreateObject();
    cJSON_AddStringToObject(params, "sessionId", host.session);
    return params;
}

/* Answers a request of the sidecar; `what` is "result" or "error". */
static void answer(const cJSON *asked, const char *what, cJSON *value)
{
    cJSON *message = cJSON_CreateObject();
    cJSON_AddItemToObject(message, "id", cJSON_Duplicate(get(asked, "id"), true));
    cJSON_AddItemToObject(message, what, value);
    wire_send(&host.wire, message);
}

/* Carries out a tool. One that fails gives a result, too: the model is to read it. */
static void call_tool(const cJSON *asked, const cJSON *params)
{
    const char *name = text_of(params, "name");
    bool known = !strcmp(name, "save_note");
    const char *note = text_of(get(params, "arguments"), "text");
    char *content = format(known ? "Saved: %s." : "There is no tool %s.", known ? note : name);
    cJSON *result = cJSON_CreateObject();
    cJSON_AddStringToObject(result, "content", content);
    cJSON_AddBoolToObject(result, "isError", !known);
    answer(asked, "result", result);
    free(content);
}

static void decide(const cJSON *asked, bool allowed)
{
    cJSON *decision = cJSON_CreateObject();
    const cJSON *option;
    cJSON_ArrayForEach(option, get(get(asked, "params"), "options"))
    {
        if (!decision->child && !strcmp(text_of(option, "kind"), allowed ? "allowOnce" : "rejectOnce"))
            cJSON_AddStringToObject(decision, "optionId", text_of(option, "optionId"));
    }
    cJSON_AddStringToObject(decision, "outcome", decision->child ? "selected" : "cancelled");
    answer(asked, "result", decision);
}

/* Shows the first question. */
static void ask(void)
{
    const cJSON *params = get(cJSON_GetArrayItem(host.questions, 0), "params");
    if (host.asking || !params)
        return;
    char *call = cJSON_PrintUnformatted(get(get(params, "toolCall"), "arguments"));
    show(stderr, format("%s %s [y/N] ", text_of(params, "title"), call ? call : ""), true);
    cJSON_free(call);
    host.asking = true;
    host.said[0] = '\0';
}

/* Hears one character of the person. The end of the input is no consent. */
static void hear(void)
{
    char c = '\n';
    size_t length = strlen(host.said);
    if (read(STDIN_FILENO, &c, 1) == 1 && c != '\n') {
        if (length < sizeof host.said - 1)
            memcpy(host.said + length, (char[]){c, '\0'}, 2);
        return;
    }
    cJSON *asked = cJSON_DetachItemFromArray(host.questions, 0);
    decide(asked, !strcmp(host.said, "y"));
    cJSON_Delete(asked);
    host.asking = false;
    ask();
}

static void end_line(void)
{
    if (host.mid_line)
        putchar('\n');
    host.mid_line = false;
}

/* Prints what happens in the run. What it does not know, it leaves out. */
static void notice(const cJSON *event)
{
    const char *type = text_of(event, "type");
    const cJSON *data = get(event, "data");
    if (!strcmp(type, "message.delta")) {
        show(stdout, format("%s", text_of(data, "text")), false);
        host.mid_line = true;
    } else if (!strcmp(type, "message.completed") || !strcmp(type, "run.completed")) {
        end_line();
    } else if (!strcmp(type, "tool.completed")) {
        end_line();
        show(stdout, format("[%s %s]\n", text_of(data, "name"), text_of(data, "status")), false);
    }
    fflush(stdout);
}

/* The next step, when the answer to the one before is there. */
static void proceed(int id, const cJSON *result)
{
    cJSON *params;
    char run[64];
    switch (id) {
    case INITIALIZED:
        params = get(get(get(result, "capabilities"), "experimental"), "sidecar");
        if (strcmp(text_of(get(result, "serverInfo"), "name"), "agent-sidecar") ||
            cJSON_GetNumberValue(get(params, "protocolVersion")) != 1) {
            fputs("this is no agent-sidecar that speaks protocol version 1\n", stderr);
            host.over = true;
            break;
        }
        mint(host.session);
        params = cJSON_Parse(CREATE_SESSION);
        cJSON_AddStringToObject(params, "sessionId", host.session);
        request(CREATED, "createSession", params);
        break;
    case CREATED:
        mint(run);
        params = in_session();
        cJSON_AddStringToObject(params, "runId", run);
        cJSON_AddStringToObject(params, "input", host.text);
        request(RAN, "run", params);
        host.running = true;
        break;
    case RAN:
        show(stdout, format("= %s: %s\n", text_of(result, "status"), text_of(result, "text")), false);
        host.status = 0;
        host.running = false;
        request(SHUT_DOWN, "shutdown", cJSON_CreateObject());
        break;
    case SHUT_DOWN:
        params = cJSON_CreateObject();
        cJSON_AddStringToObject(params, "method", "exit");
        wire_send(&host.wire, params);
        host.over = true;
        break;
    default:
        break;
    }
}

static void fail(int id, const cJSON *error)
{
    end_line();
    show(stderr, format("%s: %s\n", text_of(get(error, "data"), "kind"), text_of(error, "message")), false);
    host.running = false;
    if (id == SHUT_DOWN)
        host.over = true;
    else
        request(SHUT_DOWN, "shutdown", cJSON_CreateObject());
}

/* Takes the message over. */
static void receive(cJSON *message)
{
    const char *method = text_of(message, "method");
    const cJSON *id = get(message, "id"), *params = get(message, "params");
    const cJSON *error = get(message, "error");
    if (!*method && error) {
        fail(id ? id->valueint : 0, error);
    } else if (!*method) {
        proceed(id ? id->valueint : 0, get(message, "result"));
    } else if (!id) {
        if (!strcmp(method, "run/event"))
            notice(params);
    } else if (!strcmp(method, "host/callTool")) {
        call_tool(message, params);
    } else if (!strcmp(method, "host/requestApproval") && host.yes) {
        decide(message, true);
    } else if (!strcmp(method, "host/requestApproval")) {
        cJSON_AddItemToArray(host.questions, message);
        ask();
        return;
    } else {
        cJSON *unknown = cJSON_CreateObject();
        cJSON_AddNumberToObject(unknown, "code", -32601);
        cJSON_AddStringToObject(unknown, "message", "not served here");
        answer(message, "error", unknown);
    }
    cJSON_Delete(message);
}

static void converse(void)
{
    cJSON *params = cJSON_Parse(INITIALIZE);
    cJSON_AddNumberToObject(params, "processId", getpid());
    request(INITIALIZED, "initialize", params);
    while (!host.over) {
        struct pollfd fds[] = {
            {.fd = host.wire.out, .events = POLLIN},
            {.fd = host.wire.unsent.length ? host.wire.in : -1, .events = POLLOUT},
            {.fd = host.running ? interrupts[0] : -1, .events = POLLIN}, /* one that came sooner waits for the run */
            {.fd = host.asking ? STDIN_FILENO : -1, .events = POLLIN},
        };
        if (poll(fds, 4, -1) < 0)
            continue; /* a signal; it is in the pipe */
        if (fds[1].revents)
            wire_write(&host.wire);
        if (fds[2].revents && read(interrupts[0], (char[1]){0}, 1) == 1) {
            host.interrupted = true;
            request(CANCELLED, "cancelRun", in_session());
        }
        if (fds[3].revents)
            hear();
        if (fds[0].revents && wire_read(&host.wire)) {
            end_line();
            fputs("the sidecar has ended\n", stderr);
            return;
        }
        for (cJSON *message; !host.over && (message = wire_next(&host.wire));)
            receive(message);
    }
}

int main(int argc, char *argv[])
{
    host.yes = argc == 3 && !strcmp(argv[1], "--yes");
    if (argc != (host.yes ? 3 : 2)) {
        fputs("usage: c-host [--yes] TEXT\n", stderr);
        return 2;
    }
    host.text = argv[argc - 1];

    const char *blanks = " \t\n", *given = getenv("SIDECAR_COMMAND");
    char *line = strdup(given && given[strspn(given, blanks)] ? given : "agent-sidecar serve --store memory");
    char *command[32] = {NULL};
    int words = 0;
    for (char *word = strtok(line, blanks); word && words < 31; word = strtok(NULL, blanks))
        command[words++] = word;

    struct sigaction once = {.sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND}; /* the second ends it all */
    if (pipe(interrupts) || fcntl(interrupts[0], F_SETFD, FD_CLOEXEC) || fcntl(interrupts[1], F_SETFD, FD_CLOEXEC) ||
        sigaction(SIGINT, &once, NULL))
        return 1;
    int failed = wire_start(&host.wire, command);
    if (failed) {
        fprintf(stderr, "cannot start %s: %s\n", command[0], strerror(failed));
        free(line);
        return 1;
    }
    signal(SIGPIPE, SIG_IGN); /* a sidecar that has gone is told by the end of its output */
    host.questions = cJSON_CreateArray();
    converse();
    wire_stop(&host.wire);
    cJSON_Delete(host.questions);
    free(line);
    return host.interrupted ? 130 : host.status;
}
