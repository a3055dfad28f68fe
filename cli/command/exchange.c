/* Requests of a command, one after the other. */
#include "cli/command/exchange.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "io/loop.h"

void exchange_done(void *userdata, const struct http_call_result *result)
{
        struct exchange *e = userdata;

        free(e->body);
        e->body = malloc(result->body_bytes + 1);
        e->result = *result;
        if (e->body != NULL) {
                memcpy(e->body, result->body, result->body_bytes); /* it may have zeros */
                e->body[result->body_bytes] = '\0';
        } else {
                e->result.body_bytes = 0;
        }
        e->result.body = e->body == NULL ? "" : e->body;
        e->done = true;
}

static int turn(struct exchange *e, uint64_t usec, struct err *err)
{
        return sd_event_run(e->loop, usec) < 0 ? err_set(err, -EINTR, "interrupted") : 0;
}

int exchange_await(struct exchange *e, struct err *err)
{
        int r = 0;

        while (!e->done && r == 0)
                r = turn(e, UINT64_MAX, err);
        e->done = false;
        return r;
}

int exchange_pause(struct exchange *e, uint64_t usec, struct err *err)
{
        uint64_t now = loop_now_usec(e->loop), end = now + usec;
        int r = 0;

        for (; now < end && r == 0; now = loop_now_usec(e->loop))
                r = turn(e, end - now, err);
        return r;
}

void exchange_end(struct exchange *e)
{
        free(e->body);
        sd_event_unref(e->loop);
}
