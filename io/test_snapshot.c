/* What a child finds on the memory of its parent comes back whole, late or not at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "io/loop.h"
#include "io/snapshot.h"

struct asked {
        sd_event *loop;
        int number;
        int result;
        char *text;
        size_t bytes;
        int answers;
};

static void keep(void *userdata, int result, char *text, size_t bytes)
{
        struct asked *asked = userdata;

        asked->result = result;
        asked->text = text;
        asked->bytes = bytes;
        asked->answers++;
        (void) sd_event_exit(asked->loop, 0);
}

static void tell_number(void *userdata, struct text *ret)
{
        struct asked *asked = userdata;

        text_printf(ret, "%d", asked->number);
        asked->number = -1; /* its own */
}

static void tell_much(void *userdata, struct text *ret)
{
        (void) userdata;
        for (int i = 0; i < 300000; i++)
                text_append(ret, "0123456789");
}

static void tell_descriptors(void *userdata, struct text *ret)
{
        (void) userdata;
        for (int fd = 0; fd < 1024; fd++)
                if (fcntl(fd, F_GETFD) >= 0)
                        text_printf(ret, "%d ", fd);
}

/* It steps back behind its parent where processors or memory are short. */
static void tell_place(void *userdata, struct text *ret)
{
        char score[16] = "";
        int fd = open("/proc/self/oom_score_adj", O_RDONLY);

        (void) userdata;
        assert_true(fd >= 0 && read(fd, score, sizeof(score) - 1) > 0);
        text_printf(ret, "%s%s", score, nice(0) > 0 ? "behind" : "beside");
}

/* It ends with its parent, and whoever asks it to end is heard. */
static void tell_signals(void *userdata, struct text *ret)
{
        sigset_t blocked;
        int at_death = 0;

        (void) userdata;
        assert_int_equal(prctl(PR_GET_PDEATHSIG, &at_death), 0);
        assert_int_equal(sigprocmask(SIG_BLOCK, NULL, &blocked), 0);
        text_printf(ret, "%s %s", at_death == SIGKILL ? "bound" : "loose",
                    sigisemptyset(&blocked) ? "open" : "deaf");
}

static void be_killed(void *userdata, struct text *ret)
{
        (void) userdata;
        text_append(ret, "half of");
        (void) raise(SIGKILL);
}

static void tell_too_much(void *userdata, struct text *ret)
{
        (void) userdata;
        ret->max_bytes = 1;
        text_append(ret, "too long");
}

static void never_end(void *userdata, struct text *ret)
{
        (void) userdata;
        (void) ret;
        for (;;)
                (void) pause();
}

static struct asked ask(struct snapshot_pool *pool, sd_event *loop, snapshot_work *work)
{
        struct asked asked = { .loop = loop, .number = 42, .result = 1 };

        assert_int_equal(snapshot_run(pool, work, keep, &asked), 0);
        asked.number = 43; /* too late for the child */
        assert_int_equal(asked.answers, 0);
        assert_true(loop_run(loop) >= 0);
        assert_int_equal(asked.answers, 1);
        return asked;
}

static void what_a_child_finds_comes_back(void **state)
{
        static const struct {
                snapshot_work *work;
                int result;
                size_t bytes;
                const char *text;
        } rows[] = {
                { tell_number, 0, 2, "42" },
                { tell_much, 0, 3000000, NULL },
                { tell_descriptors, 0, 8, "0 1 2 3 " },
                { tell_place, 0, 11, "1000\nbehind" },
                { tell_signals, 0, 10, "bound open" },
                { be_killed, -EIO, 0, NULL },
                { tell_too_much, -EIO, 0, NULL },
        };

        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct snapshot_pool *pool;
                sd_event *loop = NULL;
                struct asked asked;

                assert_int_equal(loop_new(&loop, NULL), 0);
                assert_int_equal(snapshot_pool_new(loop, 60, &pool), 0);
                asked = ask(pool, loop, rows[i].work);
                assert_int_equal(asked.result, rows[i].result);
                assert_int_equal(asked.bytes, rows[i].bytes);
                if (rows[i].text != NULL)
                        assert_string_equal(asked.text, rows[i].text);
                assert_int_equal(asked.number, 43);
                free(asked.text);
                snapshot_pool_free(pool);
                sd_event_unref(loop);
        }
}

static void no_more_than_a_few_run(void **state)
{
        struct asked asked[SNAPSHOTS_MAX + 1] = { 0 };
        struct snapshot_pool *pool;
        sd_event *loop = NULL;

        (void) state;
        assert_int_equal(loop_new(&loop, NULL), 0);
        assert_int_equal(snapshot_pool_new(loop, 60, &pool), 0);
        for (int i = 0; i < SNAPSHOTS_MAX; i++) {
                asked[i].loop = loop;
                assert_int_equal(snapshot_run(pool, never_end, keep, &asked[i]), 0);
        }
        assert_int_equal(snapshot_run(pool, tell_number, keep, &asked[SNAPSHOTS_MAX]), -EBUSY);
        snapshot_pool_free(pool);
        for (int i = 0; i < SNAPSHOTS_MAX; i++) {
                assert_int_equal(asked[i].answers, 1);
                assert_int_equal(asked[i].result, -ECANCELED);
                assert_null(asked[i].text);
        }
        assert_int_equal(asked[SNAPSHOTS_MAX].answers, 0);
        sd_event_unref(loop);
}

static void who_never_ends_is_ended(void **state)
{
        struct snapshot_pool *pool;
        sd_event *loop = NULL;
        struct asked asked;

        (void) state;
        assert_int_equal(loop_new(&loop, NULL), 0);
        assert_int_equal(snapshot_pool_new(loop, 1, &pool), 0);
        asked = ask(pool, loop, never_end);
        assert_int_equal(asked.result, -ETIMEDOUT);
        assert_null(asked.text);
        snapshot_pool_free(pool);
        sd_event_unref(loop);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_a_child_finds_comes_back),
                cmocka_unit_test(no_more_than_a_few_run),
                cmocka_unit_test(who_never_ends_is_ended),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
