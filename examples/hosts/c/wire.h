/* A sidecar process behind two pipes: frames in, frames out. It never blocks; its user polls. It knows no method. */
#ifndef WIRE_H
#define WIRE_H

#include <cjson/cJSON.h>
#include <stddef.h>
#include <sys/types.h>

struct buffer {
    char *bytes;
    size_t length, room;
};

struct wire {
    pid_t pid;
    int in;  /* the sidecar's stdin: poll it for POLLOUT while unsent.length is not 0 */
    int out; /* the sidecar's stdout: poll it for POLLIN */
    struct buffer unsent, unread;
};

/* Starts a sidecar; 0, or what errno would say. */
int wire_start(struct wire *wire, char *const argv[]);

/* Takes the message over, frames it and keeps it to be written. */
void wire_send(struct wire *wire, cJSON *message);

/* Writes what the pipe takes. */
void wire_write(struct wire *wire);

/* Reads what is there; -1 at the end. */
int wire_read(struct wire *wire);

/* The next message, the caller's to delete; NULL if it is not whole yet. */
cJSON *wire_next(struct wire *wire);

/* Writes what is unsent, closes the pipes, and waits for the sidecar's end: five seconds, then it is killed. */
void wire_stop(struct wire *wire);

#endif
