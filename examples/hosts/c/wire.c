#define _POSIX_C_SOURCE 200809L
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void append(struct buffer *buffer, const char *bytes, size_t length)
{
    if (buffer->length + length >= buffer->room) {
        buffer->room = 2 * (buffer->length + length) + 1;
        buffer->bytes = realloc(buffer->bytes, buffer->room);
        if (!buffer->bytes)
            abort();
    }
    memcpy(buffer->bytes + buffer->length, bytes, length);
    buffer->length += length;
    buffer->bytes[buffer->length] = '\0';
}

static void drop(struct buffer *buffer, size_t length)
{
    buffer->length -= length;
    memmove(buffer->bytes, buffer->bytes + length, buffer->length + 1);
}

int wire_start(struct wire *wire, char *const argv[])
{
    int in[2], out[2];
    if (pipe(in) || pipe(out))
        return errno;
    int ours[] = {in[1], out[0]};
    for (int i = 0; i < 2; i++) { /* the sidecar must not hold them, or it never sees their end */
        fcntl(ours[i], F_SETFD, FD_CLOEXEC);
        fcntl(ours[i], F_SETFL, O_NONBLOCK);
    }
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, out[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&files, in[0]);
    posix_spawn_file_actions_addclose(&files, out[1]);

    posix_spawnattr_t attributes; /* a group of its own: a terminal's Ctrl-C is for the host alone */
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);

    unsetenv("PYTHONPATH");
    int failed = posix_spawnp(&wire->pid, argv[0], &files, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    close(in[0]);
    close(out[1]);
    wire->in = in[1];
    wire->out = out[0];
    wire->unsent = wire->unread = (struct buffer){0};
    if (failed) {
        close(wire->in);
        close(wire->out);
    }
    return failed;
}

void wire_send(struct wire *wire, cJSON *message)
{
    cJSON_AddStringToObject(message, "jsonrpc", "2.0");
    char *body = cJSON_PrintUnformatted(message);
    if (!body)
        abort();
    char header[48];
    int length = snprintf(header, sizeof header, "Content-Length: %zu\r\n\r\n", strlen(body));
    append(&wire->unsent, header, (size_t)length);
    append(&wire->unsent, body, strlen(body));
    cJSON_free(body);
    cJSON_Delete(message);
}

void wire_write(struct wire *wire)
{
    ssize_t written = write(wire->in, wire->unsent.bytes, wire->unsent.length);
    if (written > 0)
        drop(&wire->unsent, (size_t)written);
    else if (written < 0 && errno != EAGAIN && errno != EINTR)
        drop(&wire->unsent, wire->unsent.length); /* it has gone; the end of its output tells */
}

int wire_read(struct wire *wire)
{
    char bytes[65536];
    ssize_t got = read(wire->out, bytes, sizeof bytes);
    if (got > 0)
        append(&wire->unread, bytes, (size_t)got);
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR)) ? 0 : -1;
}

cJSON *wire_next(struct wire *wire)
{
    char *start = wire->unread.bytes;
    char *blank = wire->unread.length ? strstr(start, "\r\n\r\n") : NULL;
    if (!blank)
        return NULL;
    size_t length = 0;
    for (char *line = start; line < blank; line = strstr(line, "\r\n") + 2)
        if (!strncasecmp(line, "Content-Length:", 15))
            length = strtoul(line + 15, NULL, 10);
    size_t header = (size_t)(blank + 4 - start);
    if (wire->unread.length - header < length)
        return NULL;
    cJSON *message = cJSON_ParseWithLength(blank + 4, length);
    drop(&wire->unread, header + length);
    return message ? message : cJSON_CreateObject(); /* what is no JSON is a message that nobody knows */
}

void wire_stop(struct wire *wire)
{
    struct pollfd fds[] = {{.fd = wire->in, .events = POLLOUT}, {.fd = wire->out, .events = POLLIN}};
    int open = 1;
    while (open) {
        fds[0].fd = wire->unsent.length ? wire->in : -1;
        if (!wire->unsent.length && wire->in >= 0) {
            close(wire->in);
            wire->in = -1;
        }
        int ready = poll(fds, 2, 5000);
        if (ready == 0)
            kill(wire->pid, SIGKILL);
        if (fds[0].revents)
            wire_write(wire);
        if (ready == 0 || (fds[1].revents && wire_read(wire)))
            open = 0;
    }
    if (wire->in >= 0)
        close(wire->in);
    close(wire->out);
    waitpid(wire->pid, NULL, 0);
    free(wire->unsent.bytes);
    free(wire->unread.bytes);
}
