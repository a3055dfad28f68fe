/* Replicas that race, stall and leave at one API server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "io/clock.h"
#include "io/http/http_client.h"
#include "io/loop.h"
#include "store/lease.h"

/* Two replicas on one loop, and the API server that plays faults. Times are short: 3, 2 and 1 s. */
struct replica {
        struct lease *lease;
        unsigned changes;
        bool leading;
};

struct fixture {
        pid_t pid;
        unsigned port;
        sd_event *loop;
        struct http_client *admin;
        bool answered;
        char config[64];
        struct replica a, b;
        unsigned both; /* times that both led */
};

static void turn(struct fixture *f)
{
        (void) sd_event_run(f->loop, 20000);
        f->both += f->a.lease != NULL && f->b.lease != NULL && lease_leading(f->a.lease) &&
                   lease_leading(f->b.lease);
}

#define WAIT_UNTIL(f, what)                                                                                  \
        do {                                                                                                 \
                uint64_t end_ = clock_monotonic_usec() + 15000000;                                           \
                while (!(what)) {                                                                            \
                        if (clock_monotonic_usec() > end_)                                                   \
                                fail_msg("never came: %s", #what);                                           \
                        turn(f);                                                                             \
                }                                                                                            \
        } while (false)

static void on_changed(void *userdata, bool leading, const char *holder)
{
        struct replica *r = userdata;

        (void) holder;
        r->changes++;
        r->leading = leading;
}

static void open_lease(struct fixture *f, struct replica *r, const char *identity)
{
        struct lease_options options = { .kubeconfig = f->config,
                                         .name = "remuda-extender",
                                         .identity = identity,
                                         .duration_sec = 3,
                                         .renew_sec = 2,
                                         .retry_sec = 1,
                                         .changed = on_changed,
                                         .userdata = r };
        struct err err = { 0 };

        if (lease_open(f->loop, &options, &r->lease, &err) < 0)
                fail_msg("%s", err.msg);
}

static void on_admin(void *userdata, const struct http_call_result *result)
{
        assert_int_equal(result->status, 200);
        ((struct fixture *) userdata)->answered = true;
}

static void admin(struct fixture *f, const char *body)
{
        struct http_call_options options = { .method = "POST",
                                             .path = "/_admin",
                                             .body = body,
                                             .body_bytes = strlen(body),
                                             .done = on_admin,
                                             .userdata = f };

        f->answered = false;
        assert_int_equal(http_call_start(f->admin, &options, NULL), 0);
        WAIT_UNTIL(f, f->answered);
}

static struct fixture *fixture_new(void)
{
        struct fixture *f = calloc(1, sizeof(*f));
        char port[16] = "", url[64];
        int fds[2], fd;
        FILE *file;
        struct http_client_options options = { .base_url = url };

        assert_int_equal(pipe(fds), 0);
        f->pid = fork();
        if (f->pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                (void) dup2(fds[1], 1);
                (void) execlp("python3", "python3", "tests/fake-apiserver", (char *) NULL);
                _exit(127);
        }
        (void) close(fds[1]);
        assert_true(read(fds[0], port, sizeof(port) - 1) > 0);
        (void) close(fds[0]);
        f->port = (unsigned) strtoul(port, NULL, 10);
        (void) text_format(url, sizeof(url), "http://127.0.0.1:%u", f->port);
        (void) text_copy(f->config, sizeof(f->config), "/tmp/remuda-lease-XXXXXX");
        fd = mkstemp(f->config);
        file = fdopen(fd, "w");
        assert_non_null(file);
        (void) fprintf(file,
                       "{\"current-context\": \"c\", \"contexts\": [{\"name\": \"c\", \"context\": "
                       "{\"cluster\": \"k\", \"namespace\": \"remuda\"}}], \"clusters\": [{\"name\": \"k\", "
                       "\"cluster\": {\"server\": \"%s\"}}]}",
                       url);
        assert_int_equal(fclose(file), 0);
        assert_int_equal(loop_new(&f->loop, NULL), 0);
        assert_int_equal(http_client_new(f->loop, &options, &f->admin, NULL), 0);
        return f;
}

static void fixture_free(struct fixture *f)
{
        assert_int_equal(f->both, 0);
        lease_close(f->a.lease);
        lease_close(f->b.lease);
        http_client_free(f->admin);
        sd_event_unref(f->loop);
        (void) kill(f->pid, SIGKILL);
        (void) waitpid(f->pid, NULL, 0);
        (void) unlink(f->config);
        free(f);
}

static void one_leads_and_a_dead_one_is_replaced(void **state)
{
        struct fixture *f = fixture_new();
        uint64_t died;

        (void) state;
        open_lease(f, &f->a, "a");
        WAIT_UNTIL(f, f->a.leading);
        open_lease(f, &f->b, "b");
        for (uint64_t end = clock_monotonic_usec() + 3500000; clock_monotonic_usec() < end;)
                turn(f);
        assert_true(f->a.leading);
        assert_int_equal(f->a.changes, 1); /* renewed without a gap */
        assert_int_equal(f->b.changes, 0);
        assert_string_equal(lease_holder(f->b.lease), "a");
        lease_close(f->a.lease); /* as if killed */
        f->a.lease = NULL;
        died = clock_monotonic_usec();
        WAIT_UNTIL(f, f->b.leading);
        assert_in_range((clock_monotonic_usec() - died) / 1000, 1000, 5500);
        fixture_free(f);
}

static void who_steps_down_is_replaced_at_once(void **state)
{
        struct fixture *f = fixture_new();
        uint64_t left;

        (void) state;
        open_lease(f, &f->a, "a");
        WAIT_UNTIL(f, f->a.leading);
        open_lease(f, &f->b, "b");
        lease_give_back(f->a.lease); /* as at the end of a program */
        assert_false(lease_leading(f->a.lease));
        lease_close(f->a.lease);
        f->a.lease = NULL;
        left = clock_monotonic_usec();
        WAIT_UNTIL(f, f->b.leading);
        assert_in_range((clock_monotonic_usec() - left) / 1000, 0, 2500);
        fixture_free(f);
}

static void who_cannot_renew_stops_leading_before_others_start(void **state)
{
        struct fixture *f = fixture_new();

        (void) state;
        open_lease(f, &f->a, "a");
        WAIT_UNTIL(f, f->a.leading);
        admin(f, "{\"op\":\"fault\",\"match\":\"PUT .*leases\",\"times\":4,\"do\":\"status\",\"code\":500}");
        open_lease(f, &f->b, "b");
        WAIT_UNTIL(f, !f->a.leading);
        assert_false(lease_leading(f->a.lease));
        WAIT_UNTIL(f, f->a.leading || f->b.leading);
        fixture_free(f); /* asserts that never both did */
}

static void a_lost_reply_to_a_renewal_is_survived(void **state)
{
        struct fixture *f = fixture_new();

        (void) state;
        open_lease(f, &f->a, "a");
        WAIT_UNTIL(f, f->a.leading);
        admin(f, "{\"op\":\"fault\",\"match\":\"PUT .*leases\",\"times\":1,\"do\":\"lost\"}");
        for (uint64_t end = clock_monotonic_usec() + 4000000; clock_monotonic_usec() < end;)
                turn(f);
        assert_true(lease_leading(f->a.lease));
        fixture_free(f);
}

struct held_up {
        const struct lease *lease;
        bool before, after;
};

static void hold_up(void *userdata)
{
        struct held_up *h = userdata;

        h->before = lease_leading(h->lease);
        (void) usleep(2200000); /* longer than a claim counts for who has it */
        h->after = lease_leading(h->lease);
}

static void who_is_held_up_in_a_handler_leads_no_longer(void **state)
{
        struct fixture *f = fixture_new();
        sd_event_source *timer = NULL;
        struct held_up h = { .before = false };

        (void) state;
        open_lease(f, &f->a, "a");
        WAIT_UNTIL(f, f->a.leading);
        h.lease = f->a.lease;
        h.after = true;
        assert_true(loop_after(f->loop, 0, hold_up, &h, &timer) >= 0);
        WAIT_UNTIL(f, h.before);
        assert_false(h.after);
        sd_event_source_unref(timer);
        fixture_free(f);
}

/* A replica beside a scheduler, that may be in the midst of a commit. */
struct beside {
        struct replica replica; /* the first: on_changed() is given it */
        bool idle;
};

static bool is_idle(void *userdata)
{
        return ((const struct beside *) userdata)->idle;
}

static void put_neighbour(struct fixture *f, const char *holder)
{
        char body[400];

        (void) text_format(body, sizeof(body),
                           "{\"op\":\"put\",\"path\":\"/apis/coordination.k8s.io/v1/namespaces/remuda/"
                           "leases\",\"object\":{\"metadata\":{\"name\":\"scheduler\"},\"spec\":{"
                           "\"holderIdentity\":\"%s\",\"leaseDurationSeconds\":60}}}",
                           holder);
        admin(f, body);
}

/* A kube-scheduler that leads on another host wants the replica there. */
static void a_replica_leads_where_its_scheduler_does(void **state)
{
        struct fixture *f = fixture_new();
        struct beside a = { .idle = false };
        struct lease_options options = { .kubeconfig = f->config,
                                         .name = "remuda-extender",
                                         .identity = "here_1",
                                         .beside = "scheduler",
                                         .host = "here",
                                         .duration_sec = 3,
                                         .renew_sec = 2,
                                         .retry_sec = 1,
                                         .changed = on_changed,
                                         .idle = is_idle,
                                         .userdata = &a };
        struct err err = { 0 };

        (void) state;
        put_neighbour(f, "there_x");
        assert_int_equal(lease_open(f->loop, &options, &a.replica.lease, &err), 0);
        for (uint64_t end = clock_monotonic_usec() + 1500000; clock_monotonic_usec() < end;)
                turn(f);
        assert_false(lease_leading(a.replica.lease));
        put_neighbour(f, "hereabouts_x"); /* another host, too */
        put_neighbour(f, "here_x");
        WAIT_UNTIL(f, lease_leading(a.replica.lease));
        put_neighbour(f, "there_y");
        WAIT_UNTIL(f,
                   !lease_leading(a.replica.lease)); /* but it is given up when what is under way has ended */
        assert_string_equal(lease_holder(a.replica.lease), "here_1");
        a.idle = true;
        WAIT_UNTIL(f, lease_holder(a.replica.lease)[0] == '\0');
        put_neighbour(f, "");
        WAIT_UNTIL(f, lease_leading(a.replica.lease));
        lease_close(a.replica.lease);
        fixture_free(f);
}

/* Whoever writes its own claim over ours leads: ours is read again, not written. */
static void who_was_quicker_leads(void **state)
{
        struct fixture *f = fixture_new();

        (void) state;
        open_lease(f, &f->a, "a");
        WAIT_UNTIL(f, f->a.leading);
        admin(f, "{\"op\":\"put\",\"path\":\"/apis/coordination.k8s.io/v1/namespaces/remuda/leases\","
                 "\"object\":{\"metadata\":{\"name\":\"remuda-extender\"},\"spec\":{\"holderIdentity\":"
                 "\"other\",\"leaseDurationSeconds\":2}}}");
        WAIT_UNTIL(f, strcmp(lease_holder(f->a.lease), "other") == 0);
        WAIT_UNTIL(f, !lease_leading(f->a.lease));
        WAIT_UNTIL(f, lease_leading(f->a.lease)); /* its claim is over */
        fixture_free(f);
}

static void a_lease_that_cannot_be_is_refused(void **state)
{
        static const struct {
                struct lease_options options;
                const char *says;
        } rows[] = {
                { { .name = "x", .identity = "a", .duration_sec = 2, .renew_sec = 2 },
                  "retry < renew < duration" },
                { { .name = "x", .identity = "a", .renew_sec = 1 }, "retry < renew < duration" },
                { { .name = "../x", .identity = "a" }, "'../x' is no name" },
                { { .name = "x", .namespace_ = "a/b", .identity = "a" }, "is no name" },
                { { .name = "x", .identity = "" }, "its holder has none" },
                { { .name = "x", .identity = "a", .beside = "y" }, "this host has none" },
                { { .name = "x", .identity = "a", .beside = "y", .host = "" }, "this host has none" },
                { { .name = "x", .identity = "a", .beside = "a/b", .host = "h" }, "'a/b' is no name" },
        };
        struct fixture *f = fixture_new();

        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct lease_options options = rows[i].options;
                struct lease *lease = NULL;
                struct err err = { 0 };

                options.kubeconfig = f->config;
                if (lease_open(f->loop, &options, &lease, &err) != -EINVAL || lease != NULL ||
                    strstr(err.msg, rows[i].says) == NULL)
                        fail_msg("want '%s', got '%s'", rows[i].says, err.msg);
        }
        fixture_free(f);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(one_leads_and_a_dead_one_is_replaced),
                cmocka_unit_test(who_steps_down_is_replaced_at_once),
                cmocka_unit_test(who_cannot_renew_stops_leading_before_others_start),
                cmocka_unit_test(a_lost_reply_to_a_renewal_is_survived),
                cmocka_unit_test(who_is_held_up_in_a_handler_leads_no_longer),
                cmocka_unit_test(a_replica_leads_where_its_scheduler_does),
                cmocka_unit_test(who_was_quicker_leads),
                cmocka_unit_test(a_lease_that_cannot_be_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
