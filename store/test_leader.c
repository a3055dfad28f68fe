/* Of several replicas one commits, and not before it has read the store anew. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "io/clock.h"
#include "io/loop.h"
#include "store/leader.h"
#include "tests/support/kube_store.h"

struct replica {
        struct leader *leader;
        bool ready, idle, leading;
        unsigned refreshes, changes, warnings;
        struct text said;
};

static bool is_ready(void *userdata)
{
        return ((struct replica *) userdata)->ready;
}

static bool is_idle(void *userdata)
{
        return ((struct replica *) userdata)->idle;
}

static void on_refresh(void *userdata)
{
        ((struct replica *) userdata)->refreshes++;
}

static void on_log(void *userdata, int priority, const char *event, const char *text)
{
        struct replica *r = userdata;

        (void) priority;
        assert_string_equal(event, "leader");
        r->warnings += strstr(text, "trouble=") != NULL;
        text_printf(&r->said, "%s\n", text);
}

static void on_changed(void *userdata, bool leading)
{
        struct replica *r = userdata;

        r->changes++;
        r->leading = leading;
}

static int try_open(sd_event *loop, struct replica *r, const char *store, const char *kubeconfig,
                    struct err *err)
{
        const struct leader_options options = { .store = store,
                                                .kubeconfig = kubeconfig,
                                                .name = "remuda-x",
                                                .namespace_ = "default",
                                                .lease_sec = 4,
                                                .ready = is_ready,
                                                .refresh = on_refresh,
                                                .idle = is_idle,
                                                .log = on_log,
                                                .userdata = r };

        *r = (struct replica){ .ready = true, .idle = true };
        return leader_open(loop, &options, &r->leader, err);
}

static void open_replica(sd_event *loop, struct replica *r, const char *store, const char *kubeconfig)
{
        struct err err = { 0 };

        if (try_open(loop, r, store, kubeconfig, &err) < 0)
                fail_msg("%s", err.msg);
        assert_int_equal(leader_watch(r->leader, on_changed, r), 0);
}

static void close_replica(struct replica *r)
{
        leader_close(r->leader);
        text_free(&r->said);
}

#define WAIT(loop, what)                                                                                     \
        do {                                                                                                 \
                uint64_t end_ = clock_monotonic_usec() + patience_usec();                                    \
                while (!(what)) {                                                                            \
                        if (clock_monotonic_usec() > end_)                                                   \
                                fail_msg("never came: %s", #what);                                           \
                        (void) sd_event_run((loop), 20000);                                                  \
                }                                                                                            \
        } while (false)

static void run_for(sd_event *loop, uint64_t usec)
{
        for (uint64_t end = clock_monotonic_usec() + usec; clock_monotonic_usec() < end;)
                (void) sd_event_run(loop, 50000);
}

/* A directory of its own, and its spec. */
struct folder {
        char path[40], spec[60], command[100];
        sd_event *loop;
};

static struct folder make_folder(void)
{
        struct folder f = { .path = "/tmp/remuda-leader-XXXXXX" };

        assert_non_null(mkdtemp(f.path));
        (void) text_format(f.spec, sizeof(f.spec), "dir:%s", f.path);
        (void) text_format(f.command, sizeof(f.command), "rm -rf %s", f.path);
        assert_int_equal(loop_new(&f.loop, NULL), 0);
        return f;
}

static void remove_folder(struct folder *f)
{
        assert_int_equal(system(f->command), 0);
        sd_event_unref(f->loop);
}

static void who_comes_next_reads_first(void **state)
{
        struct folder f = make_folder();
        struct replica a, b;

        (void) state;
        open_replica(f.loop, &a, f.spec, NULL);
        assert_non_null(strstr(leader_refuses(a.leader), "does not lead")); /* it has not looked yet */
        leader_look(a.leader);
        assert_true(leader_leads(a.leader) && a.leading); /* its first reading began as the leader */
        assert_int_equal(a.refreshes, 0);
        assert_null(leader_refuses(a.leader));
        open_replica(f.loop, &b, f.spec, NULL);
        leader_look(b.leader);
        assert_false(leader_leads(b.leader));
        assert_non_null(strstr(leader_refuses(b.leader), "this replica does not lead; ask again"));
        leader_refreshed(b.leader); /* of no use to it */
        assert_false(leader_leads(b.leader));
        close_replica(&a);
        b.ready = false;
        run_for(f.loop, 800000); /* it has the lock, and does not know yet what there is */
        assert_int_equal(b.refreshes, 0);
        b.ready = true;
        WAIT(f.loop, b.refreshes == 1);
        assert_false(b.leading);
        assert_non_null(strstr(leader_refuses(b.leader), "has just begun to lead and is reading the store"));
        leader_refreshed(b.leader);
        assert_true(b.leading && leader_leads(b.leader));
        assert_int_equal(b.changes, 1);
        close_replica(&b);
        remove_folder(&f);
}

static void a_directory_that_is_another_has_a_lock_of_its_own(void **state)
{
        struct folder f = make_folder();
        struct replica a;

        (void) state;
        open_replica(f.loop, &a, f.spec, NULL);
        leader_look(a.leader);
        assert_true(a.leading);
        assert_int_equal(system(f.command), 0);
        WAIT(f.loop, !a.leading);
        assert_int_equal(mkdir(f.path, 0700), 0);
        WAIT(f.loop, a.refreshes == 1);
        leader_refreshed(a.leader);
        assert_true(a.leading);
        close_replica(&a);
        remove_folder(&f);
}

static void a_lock_that_cannot_be_had_is_spoken_of_once(void **state)
{
        struct folder f = make_folder();
        char path[80];
        struct replica a;
        struct err err = { 0 };

        (void) state;
        (void) text_format(path, sizeof(path), "%s/.remuda-x.lock", f.path);
        assert_int_equal(symlink("elsewhere", path), 0); /* it is not followed */
        open_replica(f.loop, &a, f.spec, NULL);
        assert_int_equal(a.warnings, 1);
        assert_non_null(strstr(a.said.data, "trouble=\"open '.remuda-x.lock' in the store"));
        run_for(f.loop, 1200000);
        assert_int_equal(a.warnings, 1);
        assert_int_equal(unlink(path), 0);
        WAIT(f.loop, a.refreshes == 1);
        close_replica(&a);
        assert_int_equal(try_open(f.loop, &a, "dir:/no/such/folder", NULL, &err), -ENOENT);
        assert_non_null(strstr(err.msg, "open the store's directory"));
        remove_folder(&f);
}

static void alone_by_order_it_leads(void **state)
{
        struct folder f = make_folder();
        struct replica a = { .leader = NULL };
        struct err err = { 0 };

        (void) state;
        assert_true(leader_leads(NULL));
        assert_null(leader_refuses(NULL));
        leader_look(NULL);
        leader_refreshed(NULL);
        assert_int_equal(leader_campaign(NULL, "x", &err), 0);
        assert_int_equal(leader_watch(NULL, on_changed, &a), 0);
        assert_true(a.leading); /* it is told at once */
        leader_resign(NULL);
        leader_close(NULL);
        open_replica(f.loop, &a, f.spec, NULL);
        leader_look(a.leader);
        for (int i = 1; i < LEADER_WATCHES_MAX; i++)
                assert_int_equal(leader_watch(a.leader, on_changed, &a), 0);
        assert_int_equal(leader_watch(a.leader, on_changed, &a), -E2BIG);
        assert_int_equal(leader_campaign(a.leader, "x", &err), 0); /* a lock is all that it needs */
        close_replica(&a);
        remove_folder(&f);
}

/* Whatever the time of a lease, a commit ends before another replica may begin to lead. */
static void commits_end_within_the_lease(void **state)
{
        (void) state;
        for (unsigned sec = 1; sec <= 60; sec++) {
                assert_true(leader_commit_usec(sec) > 0);
                assert_true(leader_commit_usec(sec) < sec * UINT64_C(1000000));
        }
        assert_int_equal(leader_commit_usec(10), 3800000);
}

static void a_lease_elects_and_names_who_leads(void **state)
{
        struct kube_store *k = kube_store_new();
        struct replica a, b;
        struct err err = { 0 };

        (void) state;
        open_replica(k->loop, &a, "kubernetes", k->config);
        open_replica(k->loop, &b, "kubernetes", k->config);
        assert_int_equal(leader_campaign(a.leader, "10.0.0.1:1", &err), 0);
        WAIT(k->loop, a.refreshes == 1);
        leader_refreshed(a.leader);
        assert_true(a.leading);
        assert_int_equal(leader_campaign(b.leader, "10.0.0.2:2", &err), 0);
        WAIT(k->loop, strstr(leader_refuses(b.leader), "_10.0.0.1:1' does; ask again") != NULL);
        a.idle = false; /* a commit is under way: nobody else may begin yet */
        leader_resign(a.leader);
        assert_false(leader_leads(a.leader));
        close_replica(&a);
        WAIT(k->loop, b.refreshes == 1); /* when the lease is over */
        leader_refreshed(b.leader);
        assert_true(b.leading);
        kube_store_admin(k, "{\"op\":\"fault\",\"match\":\"leases\",\"times\":1000,\"do\":\"status\","
                            "\"code\":500}");
        WAIT(k->loop, !b.leading);
        assert_true(b.warnings > 0);
        close_replica(&b);
        kube_store_free(k);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(who_comes_next_reads_first),
                cmocka_unit_test(a_directory_that_is_another_has_a_lock_of_its_own),
                cmocka_unit_test(a_lock_that_cannot_be_had_is_spoken_of_once),
                cmocka_unit_test(alone_by_order_it_leads),
                cmocka_unit_test(commits_end_within_the_lease),
                cmocka_unit_test(a_lease_elects_and_names_who_leads),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
