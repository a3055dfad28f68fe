/* Page answers: what takes long to write, written by a child on a snapshot (io/snapshot.h), once for all who
 * ask meanwhile, so that filter and bind wait for nothing. An answer is kept as long as nothing has changed.
 * Owned by its creator. */
#pragma once

#include <systemd/sd-event.h>

#include "io/http/http.h"
#include "io/snapshot.h"

struct page_answers;

/* One question. The child's text is the body, JSON. */
struct page_answers_question {
        snapshot_work *work;
        uint64_t keep_usec; /* so long an answer is given though something has changed */
        uint64_t rest_usec; /* ... and no other is begun: who wants a newer one waits */
};

/* page_answers_new() - @questions: static, @count of them; @userdata: work()'s. Return: 0 or -ENOMEM. */
int page_answers_new(sd_event *loop, const struct page_answers_question *questions, size_t count,
                     void *userdata, struct page_answers **ret);
void page_answers_free(struct page_answers *answers); /* who waits is told 503; accepts NULL */

/* page_answers_give() - now or later. @version: of what is asked about; an answer that was begun at this
 * version, or is young enough, will do. */
void page_answers_give(struct page_answers *answers, size_t question, uint64_t version,
                       const struct http_request *request, struct http_reply *reply);
