/* Exchange: one request after the other for a command of people, each waited for on a loop of its own, which
 * SIGINT and SIGTERM end. */
#pragma once

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "base/err.h"
#include "io/http/http_call.h"

/* A request, and its reply once it is there. Zero-initialised but for its loop. */
struct exchange {
        sd_event *loop; /* owned */
        bool done;
        bool said; /* of an extender: it itself refuses the question */
        struct http_call_result result;
        char *body; /* owned: result.body, which may have zeros */
};

/* exchange_done() - as a call's done(), with the exchange as its userdata. */
void exchange_done(void *userdata, const struct http_call_result *result);

/* exchange_await() - until the reply is there. Return: 0, or -EINTR where a signal came first. */
int exchange_await(struct exchange *e, struct err *err);

/* exchange_pause() - so long. Return: as exchange_await(). */
int exchange_pause(struct exchange *e, uint64_t usec, struct err *err);

void exchange_end(struct exchange *e);
