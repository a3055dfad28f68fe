/* A kept page, a child at most, and those who wait for it, for each question. */
#include "scheduler-extender/page/page_answers.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "io/clock.h"
#include "io/http/http_pages.h"
#include "io/loop.h"

#define WORK_SECONDS  15
#define RETRY_SECONDS 2
#define WAITERS_MAX   256                      /* of one question */
#define FRESH_USEC    (UINT64_C(10) * 1000000) /* signs of life are in no version */
#define NO_PROCESS    "no process or memory for the question"

struct waiter {
        struct http_pending *pending;
        uint64_t version; /* that will do */
};

struct answer {
        const struct page_answers_question *question;
        struct page_answers *all;
        struct http_pages_page *page;  /* NULL = none yet */
        uint64_t version;              /* of the page, at its beginning */
        uint64_t made_usec, took_usec; /* when it was done, and how long that took */
        sd_event_source *timer;        /* to begin the next, after the rest */
        bool running;
        uint64_t running_version, running_usec;
        struct waiter *waiters;
        size_t count, capacity;
};

struct page_answers {
        struct snapshot_pool *snapshots;
        void *userdata;
        bool closing;
        size_t count;
        struct answer answers[];
};

static void refuse(struct http_reply *reply, const char *why)
{
        http_reply_error(reply, 503, "%s: try again", why);
        reply->retry_after_sec = RETRY_SECONDS;
}

static bool will_do(const struct answer *a, uint64_t version)
{
        uint64_t now = clock_monotonic_usec();

        return a->page != NULL && ((a->version >= version && now < a->made_usec + FRESH_USEC) ||
                                   now < a->made_usec + a->question->keep_usec);
}

/* Those whose version is there by now; all, where @why says why there is none. */
static void resume_waiters(struct answer *a, const char *why)
{
        size_t kept = 0;

        for (size_t i = 0; i < a->count; i++) {
                struct http_reply reply = { .retry_after_sec = 0 };

                if (why != NULL)
                        refuse(&reply, why);
                else if (will_do(a, a->waiters[i].version))
                        http_pages_answer(a->page, &reply);
                else {
                        a->waiters[kept++] = a->waiters[i];
                        continue;
                }
                http_resume(a->waiters[i].pending, &reply);
        }
        a->count = kept;
}

static int begin_soon(struct answer *a);

static uint64_t newest_wanted(const struct answer *a)
{
        uint64_t version = 0;

        for (size_t i = 0; i < a->count; i++)
                version = a->waiters[i].version > version ? a->waiters[i].version : version;
        return version;
}

/* In the loop. */
static void on_done(void *userdata, int result, char *text, size_t bytes)
{
        struct answer *a = userdata;
        struct http_pages_page *page =
                result == 0 && bytes > 0 ? http_pages_new(TAKE(text), bytes, NULL) : NULL;

        free(text);
        a->running = false;
        if (page == NULL) {
                resume_waiters(a, result == -ETIMEDOUT ? "it was not worked out in time"
                                                       : "whoever worked it out was ended");
                return;
        }
        http_pages_unref(a->page);
        a->page = page;
        a->version = a->running_version;
        a->made_usec = clock_monotonic_usec();
        a->took_usec = a->made_usec - a->running_usec;
        resume_waiters(a, NULL);
        if (a->count > 0 && !a->all->closing && begin_soon(a) < 0)
                resume_waiters(a, NO_PROCESS);
}

/* In the child. */
static void work(void *userdata, struct text *ret)
{
        const struct answer *a = userdata;

        a->question->work(a->all->userdata, ret);
}

static int begin(struct answer *a, uint64_t version)
{
        int r = snapshot_run(a->all->snapshots, work, on_done, a);

        if (r < 0)
                return r;
        a->running = true;
        a->running_version = version;
        a->running_usec = clock_monotonic_usec();
        return 0;
}

static void on_rested(void *userdata)
{
        struct answer *a = userdata;

        if (!a->running && a->count > 0 && begin(a, newest_wanted(a)) < 0)
                resume_waiters(a, NO_PROCESS);
}

/* For those who wait. What took long rests as long: no question has a processor of its own. */
static int begin_soon(struct answer *a)
{
        uint64_t now = clock_monotonic_usec(), due = a->running_usec + a->question->rest_usec;

        if (due < a->made_usec + a->took_usec)
                due = a->made_usec + a->took_usec;
        if (a->running || loop_is_armed(a->timer))
                return 0;
        if (a->running_usec == 0 || now >= due)
                return begin(a, newest_wanted(a));
        loop_rearm(a->timer, due - now);
        return 0;
}

void page_answers_give(struct page_answers *answers, size_t question, uint64_t version,
                       const struct http_request *request, struct http_reply *reply)
{
        struct answer *a = &answers->answers[question];
        struct waiter *waiter;

        if (will_do(a, version)) {
                http_pages_answer(a->page, reply);
                return;
        }
        waiter = a->count < WAITERS_MAX ? array_add(&a->waiters, &a->count, &a->capacity, sizeof(*waiter))
                                        : NULL;
        if (waiter == NULL) {
                refuse(reply, "many wait for this answer");
                return;
        }
        *waiter = (struct waiter){ .version = version };
        if (begin_soon(a) < 0 || (a->waiters[a->count - 1].pending = http_suspend(request)) == NULL) {
                a->count--;
                refuse(reply, NO_PROCESS);
        }
}

int page_answers_new(sd_event *loop, const struct page_answers_question *questions, size_t count,
                     void *userdata, struct page_answers **ret)
{
        struct page_answers *answers = calloc(1, sizeof(*answers) + count * sizeof(answers->answers[0]));

        if (answers == NULL || snapshot_pool_new(loop, WORK_SECONDS, &answers->snapshots) < 0) {
                free(answers);
                return -ENOMEM;
        }
        answers->userdata = userdata;
        answers->count = count;
        for (size_t i = 0; i < count; i++) {
                struct answer *a = &answers->answers[i];

                a->question = &questions[i];
                a->all = answers;
                if (loop_timer(loop, on_rested, a, &a->timer) < 0) {
                        page_answers_free(answers);
                        return -ENOMEM;
                }
        }
        *ret = answers;
        return 0;
}

void page_answers_free(struct page_answers *answers)
{
        if (answers == NULL)
                return;
        answers->closing = true;
        snapshot_pool_free(answers->snapshots); /* ends what runs: on_done() */
        for (size_t i = 0; i < answers->count; i++) {
                struct answer *a = &answers->answers[i];

                sd_event_source_disable_unref(a->timer);
                resume_waiters(a, "the server ends");
                http_pages_unref(a->page);
                free(a->waiters);
        }
        free(answers);
}
