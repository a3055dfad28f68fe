/* Lists and watches of an API server that drops them, forgets its history, and is unwell or away. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "store/kubernetes/reflector.h"
#include "tests/support/kube_store.h"

static void lists_and_watches(void **state)
{
        struct kube_store *f = kube_store_new();

        (void) state;
        kube_store_put_pod(f, "a", "u-a", NULL);
        kube_store_admin(f, "{\"op\":\"put\",\"path\":\"" KUBE_STORE_NODES
                            "\",\"object\":{\"metadata\":{\"name\":\"n1\"}}}");
        kube_store_open(f, 1u << STORE_POD | 1u << STORE_NODE, NULL);
        KUBE_STORE_WAIT(f, f->synced[STORE_POD] == 1 && f->synced[STORE_NODE] == 1);
        assert_true(kube_store_has(f, "Pod default/a"));
        assert_true(kube_store_has(f, "Node n1"));
        kube_store_put_pod(f, "b", "u-b", "n1");
        KUBE_STORE_WAIT(f, kube_store_has(f, "Pod default/b"));
        kube_store_put_pod(f, "a", "u-a", "n2");
        KUBE_STORE_WAIT(f, strcmp(kube_store_field(f, "Pod default/a", "spec", "nodeName"), "n2") == 0);
        kube_store_admin(f, "{\"op\":\"delete\",\"path\":\"" KUBE_STORE_PODS "/a\"}");
        KUBE_STORE_WAIT(f, !kube_store_has(f, "Pod default/a"));
        kube_store_free(f);
}

static void a_long_list_comes_in_pages(void **state)
{
        struct kube_store *f = kube_store_new();

        (void) state;
        for (int i = 0; i < 1100; i += 1) {
                char name[16], uid[16];

                if (i >= 3 && i < 1097)
                        continue; /* few requests, and yet three pages: see below */
                (void) text_format(name, sizeof(name), "p%04d", i);
                (void) text_format(uid, sizeof(uid), "u%d", i);
                kube_store_put_pod(f, name, uid, NULL);
        }
        kube_store_admin(
                f, "{\"op\":\"fault\",\"match\":\"continue=\",\"times\":1,\"do\":\"status\",\"code\":410,"
                   "\"reason\":\"Expired\"}");
        kube_store_open_pods(f);
        assert_int_equal(json_object_size(f->objects), 6);
        kube_store_free(f);
}

static void only_the_pods_of_one_node(void **state)
{
        struct kube_store *f = kube_store_new();

        (void) state;
        kube_store_put_pod(f, "mine", "u1", "n1");
        kube_store_put_pod(f, "other", "u2", "n2");
        kube_store_open(f, 1u << STORE_POD, "n1");
        KUBE_STORE_WAIT(f, f->synced[STORE_POD] == 1);
        assert_true(kube_store_has(f, "Pod default/mine"));
        assert_false(kube_store_has(f, "Pod default/other"));
        kube_store_free(f);
}

static void put_in(struct kube_store *f, const char *namespace_, const char *name)
{
        kube_store_admin(f,
                         "{\"op\":\"put\",\"path\":\"/api/v1/namespaces/%s/pods\",\"object\":{\"metadata\":{"
                         "\"name\":\"%s\",\"namespace\":\"%s\",\"uid\":\"u-%s\"}}}",
                         namespace_, name, namespace_, name);
}

/* Other rights than these are not wanted: no path is asked for that is not of one of them. */
static void only_what_is_in_some_namespaces(void **state)
{
        static const char *const namespaces[] = { "a", "b" };
        struct kube_store *f = kube_store_new();

        (void) state;
        f->namespaces = namespaces;
        f->namespace_count = ARRAY_SIZE(namespaces);
        put_in(f, "a", "x");
        put_in(f, "c", "z");
        kube_store_admin(f, "{\"op\":\"put\",\"path\":\"" KUBE_STORE_NODES
                            "\",\"object\":{\"metadata\":{\"name\":\"n1\"}}}");
        kube_store_open(f, 1u << STORE_POD | 1u << STORE_NODE | 1u << STORE_LEASE, NULL);
        KUBE_STORE_WAIT(f, f->synced[STORE_POD] == 1 && f->synced[STORE_NODE] == 1);
        assert_true(kube_store_has(f, "Pod a/x"));
        assert_true(kube_store_has(f, "Node n1"));
        put_in(f, "b", "y");
        KUBE_STORE_WAIT(f, kube_store_has(f, "Pod b/y"));
        assert_int_equal(f->synced[STORE_POD], 1); /* once, when both were there */
        store_refresh(f->store);
        KUBE_STORE_WAIT(f, f->synced[STORE_POD] == 2);
        assert_int_equal(kube_store_count_requests(f, "/api/v1/pods"), 0);
        assert_int_equal(kube_store_count_requests(f, "/namespaces/c/"), 0);
        assert_int_equal(kube_store_count_requests(f, "namespaces/a/pods?limit"), 2);
        assert_int_equal(kube_store_count_requests(f, "namespaces/b/pods?limit"), 2);
        assert_true(kube_store_count_requests(f, "namespaces/kube-node-lease/leases?limit") > 0);
        assert_false(kube_store_has(f, "Pod c/z"));
        assert_null(store_namespace_trouble(f->store, "a"));
        kube_store_free(f);
}

/* One of them is not there, or a right was forgotten: the others go on, and it is tried again. What was read
 * of it before stands. */
static void a_namespace_without_rights_stops_no_other(void **state)
{
        static const char *const namespaces[] = { "a", "b" };
        struct kube_store *f = kube_store_new();

        (void) state;
        f->namespaces = namespaces;
        f->namespace_count = ARRAY_SIZE(namespaces);
        put_in(f, "a", "x");
        put_in(f, "b", "y");
        kube_store_admin(f, "{\"op\":\"fault\",\"match\":\"namespaces/b/"
                            "pods\",\"times\":1000000,\"do\":\"status\",\"code\":403}");
        kube_store_open(f, 1u << STORE_POD, NULL);
        KUBE_STORE_WAIT(f, f->synced[STORE_POD] == 1 && store_namespace_trouble(f->store, "b") != NULL);
        assert_true(kube_store_has(f, "Pod a/x"));
        assert_false(kube_store_has(f, "Pod b/y"));
        assert_null(store_namespace_trouble(f->store, "a"));
        assert_true(kube_store_said(
                f, "namespace 'b' is not read: it is not there, or nobody gave us our rights"));
        kube_store_run_for(f, 300000); /* nobody becomes old by it */
        assert_int_equal(store_age_usec(f->store, STORE_ALL_KINDS, clock_monotonic_usec()), 0);
        kube_store_admin(f, "{\"op\":\"well\"}");
        KUBE_STORE_WAIT(f, kube_store_has(f, "Pod b/y") && store_namespace_trouble(f->store, "b") == NULL);
        kube_store_admin(f, "{\"op\":\"fault\",\"match\":\"namespaces/b/"
                            "pods\",\"times\":1000000,\"do\":\"status\",\"code\":403}");
        store_refresh(f->store);
        KUBE_STORE_WAIT(f, store_namespace_trouble(f->store, "b") != NULL);
        KUBE_STORE_WAIT(f, f->synced[STORE_POD] >= 3);
        assert_true(kube_store_has(f, "Pod b/y"));
        kube_store_admin(f, "{\"op\":\"well\"}");
        KUBE_STORE_WAIT(f, store_namespace_trouble(f->store, "b") == NULL);
        kube_store_admin(f, "{\"op\":\"fault\",\"match\":\"namespaces/b/"
                            "pods\",\"times\":1000000,\"do\":\"status\",\"code\":403}");
        kube_store_admin(f, "{\"op\":\"drop\"}"); /* a watch that is refused says so, too */
        KUBE_STORE_WAIT(f, store_namespace_trouble(f->store, "b") != NULL);
        kube_store_free(f);
}

/* Who takes what is not there for gone waits for the last page. */
static void a_namespace_is_read_when_its_list_is_whole(void **state)
{
        static const char *const namespaces[] = { "a", "b" };
        enum { PODS = 501 }; /* one more than a page has */
        struct kube_store *f = kube_store_new();

        (void) state;
        f->namespaces = namespaces;
        f->namespace_count = ARRAY_SIZE(namespaces);
        for (int i = 0; i < PODS; i++) {
                char name[16];

                (void) text_format(name, sizeof(name), "p%03d", i);
                put_in(f, "b", name);
        }
        kube_store_admin(f, "{\"op\":\"fault\",\"match\":\"namespaces/b/"
                            "pods\",\"times\":1000000,\"do\":\"status\",\"code\":403}");
        kube_store_open(f, 1u << STORE_POD, NULL);
        KUBE_STORE_WAIT(f, f->synced[STORE_POD] == 1 && store_namespace_trouble(f->store, "b") != NULL);
        assert_int_equal(f->deliveries, 0);
        kube_store_admin(f, "{\"op\":\"well\"}");
        KUBE_STORE_WAIT(f, store_namespace_trouble(f->store, "b") == NULL);
        assert_int_equal(f->deliveries, PODS);
        kube_store_free(f);
}

static void a_dropped_watch_resumes_where_it_was(void **state)
{
        struct kube_store *f = kube_store_new();

        (void) state;
        kube_store_put_pod(f, "a", "u-a", NULL);
        kube_store_open_pods(f);
        kube_store_admin(f, "{\"op\":\"drop\"}");
        kube_store_put_pod(f, "b", "u-b", NULL);
        KUBE_STORE_WAIT(f, kube_store_has(f, "Pod default/b"));
        kube_store_admin(f, "{\"op\":\"end\"}"); /* a clean end, as every few minutes */
        kube_store_put_pod(f, "c", "u-c", NULL);
        KUBE_STORE_WAIT(f, kube_store_has(f, "Pod default/c"));
        assert_int_equal(f->deliveries, 3);                          /* nothing twice */
        assert_int_equal(kube_store_count_requests(f, "limit="), 1); /* and no second list */
        kube_store_free(f);
}

static void history_that_is_gone_means_a_new_list(void **state)
{
        static const char *const how[] = { "status", "event" };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(how); i++) {
                struct kube_store *f = kube_store_new();

                kube_store_put_pod(f, "a", "u-a", NULL);
                kube_store_put_pod(f, "b", "u-b", NULL);
                kube_store_put_pod(f, "c", "u-c", NULL);
                kube_store_open_pods(f);
                kube_store_admin(f, "{\"op\":\"fault\",\"match\":\"watch=1\",\"times\":1,\"do\":\"close\"}");
                kube_store_admin(f, "{\"op\":\"drop\"}");
                kube_store_admin(f, "{\"op\":\"delete\",\"path\":\"" KUBE_STORE_PODS "/a\"}");
                kube_store_put_pod(f, "b", "u-b2", NULL); /* another pod of that name */
                kube_store_admin(f, "{\"op\":\"compact\",\"how\":\"%s\"}", how[i]);
                KUBE_STORE_WAIT(f, f->synced[STORE_POD] == 2);
                assert_false(kube_store_has(f, "Pod default/a"));
                assert_string_equal(kube_store_field(f, "Pod default/b", "metadata", "uid"), "u-b2");
                assert_int_equal(f->gone, 2);       /* a, and the old b before the new one */
                assert_int_equal(f->deliveries, 6); /* c was not delivered again */
                kube_store_put_pod(f, "d", "u-d", NULL);
                KUBE_STORE_WAIT(f, kube_store_has(f, "Pod default/d"));
                kube_store_free(f);
        }
}

static void bookmarks_keep_the_place(void **state)
{
        struct kube_store *f = kube_store_new();

        (void) state;
        kube_store_put_pod(f, "a", "u-a", NULL);
        kube_store_open_pods(f);
        KUBE_STORE_WAIT(f, kube_store_count_requests(f, "watch=") >= 1);
        kube_store_run_for(f, 200000); /* the server has the watch open: a bookmark goes to open ones alone */
        kube_store_admin(f, "{\"op\":\"compact\"}");  /* history up to here is gone */
        kube_store_admin(f, "{\"op\":\"bookmark\"}"); /* but the watch was told a newer place */
        kube_store_run_for(f, 600000);
        kube_store_admin(f, "{\"op\":\"drop\"}");
        kube_store_put_pod(f, "b", "u-b", NULL);
        KUBE_STORE_WAIT(f, kube_store_has(f, "Pod default/b"));
        assert_int_equal(kube_store_count_requests(f, "limit="), 1);
        kube_store_free(f);
}

static void events_may_come_in_any_pieces(void **state)
{
        struct kube_store *f = kube_store_new();

        (void) state;
        kube_store_open(f, 1u << STORE_POD, NULL);
        KUBE_STORE_WAIT(f, f->synced[STORE_POD] == 1);
        kube_store_admin(f, "{\"op\":\"split\",\"bytes\":7}");
        for (int i = 0; i < 5; i++) {
                char name[8];

                (void) text_format(name, sizeof(name), "p%d", i);
                kube_store_put_pod(f, name, name, "a-node-with-a-long-name");
        }
        KUBE_STORE_WAIT(f, json_object_size(f->objects) == 5);
        kube_store_free(f);
}

static void a_rotated_token_is_read_again(void **state)
{
        struct kube_store *f = kube_store_new();

        (void) state;
        kube_store_admin(f, "{\"op\":\"tokens\",\"tokens\":[\"first\"]}");
        kube_store_put_pod(f, "a", "u-a", NULL);
        kube_store_open_pods(f);
        kube_store_write_file(f->token, "second\n");
        kube_store_admin(f, "{\"op\":\"tokens\",\"tokens\":[\"second\"]}");
        kube_store_bind(f, "a", "u-a", "n1");
        assert_int_equal(f->result, 0);
        kube_store_admin(f, "{\"op\":\"tokens\",\"tokens\":[\"third\"]}"); /* and with no valid one */
        kube_store_bind(f, "a", "u-a", "n1");
        assert_int_equal(f->result, -EACCES);
        kube_store_free(f);
}

static void a_404_takes_nothing_that_is_known(void **state)
{
        struct kube_store *f = kube_store_new();

        (void) state;
        kube_store_put_pod(f, "a", "u-a", NULL);
        kube_store_open_pods(f);
        kube_store_admin(f, "{\"op\":\"fault\",\"match\":\"GET /api/v1/pods\",\"times\":4,\"do\":\"status\","
                            "\"code\":404,\"reason\":\"NotFound\"}");
        kube_store_admin(f, "{\"op\":\"drop\"}");
        KUBE_STORE_WAIT(f, store_age_usec(f->store, STORE_ALL_KINDS, clock_monotonic_usec()) > 500000);
        assert_true(kube_store_has(f, "Pod default/a"));
        KUBE_STORE_WAIT(f, store_age_usec(f->store, STORE_ALL_KINDS, clock_monotonic_usec()) == 0);
        assert_true(kube_store_has(f, "Pod default/a"));
        assert_int_equal(f->gone, 0);
        kube_store_free(f);
}

static void an_optional_kind_is_missing_without_a_word(void **state)
{
        struct kube_store *f = kube_store_new();

        (void) state;
        kube_store_admin(f, "{\"op\":\"fault\",\"match\":\"GET /apis/resource.k8s.io/v1/resourceclaims\","
                            "\"times\":1000,\"do\":\"status\",\"code\":403,\"reason\":\"Forbidden\"}");
        kube_store_open(f, 1u << STORE_RESOURCE_SLICE | 1u << STORE_RESOURCE_CLAIM, NULL);
        KUBE_STORE_WAIT(f, f->synced[STORE_RESOURCE_SLICE] == 1 && f->synced[STORE_RESOURCE_CLAIM] == 1);
        assert_true(store_age_usec(f->store, STORE_ALL_KINDS, clock_monotonic_usec()) == 0);
        assert_int_equal(json_array_size(f->troubles), 1); /* the one that is refused is told, once */
        kube_store_admin(f, "{\"op\":\"well\"}");
        kube_store_free(f);
}

/* Who decides by what is not shown asks for the namespace that it is about. */
static void what_is_not_shown_in_one_namespace_is_said_of_it(void **state)
{
        static const char *const namespaces[] = { "a", "b" };
        struct kube_store *f = kube_store_new();

        (void) state;
        f->namespaces = namespaces;
        f->namespace_count = ARRAY_SIZE(namespaces);
        kube_store_admin(f,
                         "{\"op\":\"put\",\"path\":\"/apis/kueue.x-k8s.io/v1beta1/namespaces/b/workloads\","
                         "\"object\":{\"metadata\":{\"name\":\"w\"}}}");
        kube_store_admin(f, "{\"op\":\"fault\",\"match\":\"namespaces/a/workloads\",\"times\":1000,"
                            "\"do\":\"status\",\"code\":403,\"reason\":\"Forbidden\"}");
        kube_store_open(f, 1u << STORE_KUEUE_WORKLOAD, NULL);
        KUBE_STORE_WAIT(f, f->synced[STORE_KUEUE_WORKLOAD] == 1);
        assert_false(store_serves(f->store, STORE_KUEUE_WORKLOAD, "a"));
        assert_true(store_serves(f->store, STORE_KUEUE_WORKLOAD, "b"));
        assert_true(store_serves(f->store, STORE_KUEUE_WORKLOAD, NULL));
        assert_true(store_serves(f->store, STORE_POD, "a")); /* is not wanted: nothing is said of it */
        kube_store_admin(f, "{\"op\":\"well\"}");
        kube_store_free(f);
}

static void a_kind_that_is_not_installed_is_empty_until_it_is(void **state)
{
        struct kube_store *f = kube_store_new();

        (void) state;
        kube_store_open(f, 1u << STORE_TRAINING_JOB, NULL);
        KUBE_STORE_WAIT(f, f->synced[STORE_TRAINING_JOB] == 1);
        assert_int_equal(json_array_size(f->troubles), 1);
        assert_true(store_age_usec(f->store, STORE_ALL_KINDS, clock_monotonic_usec()) == 0);
        kube_store_admin(f, "{\"op\":\"put\",\"path\":\"/apis/remuda.dev/v1alpha1/namespaces/default/"
                            "trainingjobs\",\"object\":{\"metadata\":{\"name\":\"j\"}}}");
        KUBE_STORE_WAIT(f, kube_store_has(f, "TrainingJob default/j"));
        kube_store_free(f);
}

static void an_unwell_server_makes_the_store_old_not_empty(void **state)
{
        struct kube_store *f = kube_store_new();

        (void) state;
        kube_store_put_pod(f, "a", "u-a", NULL);
        kube_store_open_pods(f);
        kube_store_admin(
                f, "{\"op\":\"fault\",\"match\":\"watch=1\",\"times\":3,\"do\":\"status\",\"code\":500}");
        kube_store_admin(f, "{\"op\":\"drop\"}");
        KUBE_STORE_WAIT(f, store_age_usec(f->store, STORE_ALL_KINDS, clock_monotonic_usec()) > 100000);
        assert_true(kube_store_has(f, "Pod default/a"));
        KUBE_STORE_WAIT(f, store_age_usec(f->store, STORE_ALL_KINDS, clock_monotonic_usec()) == 0);
        assert_int_equal(f->deliveries, 1);
        kube_store_free(f);
}

/* What a server keeps and our library refuses is read; a list and a watch go on beside it. */
static void one_odd_object_stops_nothing(void **state)
{
        struct kube_store *f = kube_store_new();

        (void) state;
        for (int round = 0; round < 2; round++) { /* in the list, then in the watch */
                kube_store_admin(f,
                                 "{\"op\":\"put\",\"path\":\"" KUBE_STORE_PODS
                                 "\",\"object\":{\"metadata\":{\"name\":\"odd%d\",\"uid\":\"u-odd\","
                                 "\"annotations\":{\"a\":\"x\\u0000y\"}},\"spec\":{\"nodeName\":\"n1\","
                                 "\"n\":100000000000000000000}}}",
                                 round);
                kube_store_put_pod(f, round == 0 ? "a" : "b", "u", "n2");
                if (round == 0)
                        kube_store_open_pods(f);
        }
        KUBE_STORE_WAIT(f, kube_store_has(f, "Pod default/b"));
        assert_string_equal(kube_store_field(f, "Pod default/odd0", "spec", "nodeName"), "n1");
        assert_string_equal(kube_store_field(f, "Pod default/odd1", "spec", "nodeName"), "n1");
        assert_int_equal(json_object_size(f->objects), 4);
        assert_int_equal(json_array_size(f->troubles), 0);
        assert_int_equal(kube_store_count_requests(f, "limit="), 1);
        kube_store_free(f);
}

/* Who has no name is counted and told; nobody is taken for gone by a list that has such an item. */
static void an_item_without_a_name_stops_nothing(void **state)
{
        struct kube_store *f = kube_store_new();
        static const char whole[] = "{\"metadata\":{\"resourceVersion\":\"9\"},\"items\":[{\"metadata\":{"
                                    "\"name\":\"a\",\"namespace\":\"default\"}}]}",
                          odd[] = "{\"metadata\":{\"resourceVersion\":\"9\"},\"items\":[{\"metadata\":{"
                                  "\"name\":7}},nonsense,{\"metadata\":{\"name\":\"b\",\"namespace\":"
                                  "\"default\"}}]}";
        struct store store = {
                .options = { .changed = kube_store_changed, .trouble = kube_store_trouble, .userdata = f }
        };
        struct reflector r = { .store = &store, .kind = STORE_POD, .list = 1 };

        (void) state;
        for (int i = 0; i < 2; i++) {
                json_feed_begin(&r.page, 1000);
                assert_int_equal(
                        reflector_take_page(&r, i == 0 ? whole : odd, strlen(i == 0 ? whole : odd), NULL), 0);
                assert_int_equal(reflector_end_page(&r, NULL), 0);
        }
        assert_int_equal(r.unreadable, 2);
        assert_true(kube_store_has(f, "Pod default/a") && kube_store_has(f, "Pod default/b"));
        assert_int_equal(json_array_size(f->troubles), 1);
        assert_true(kube_store_said(f, "an item of the list of Pod cannot be read"));
        reflector_stop(&r);
        kube_store_free(f);
}

/* Pages of 36 MB would be memory that tenants choose: they are asked for in smaller ones. */
static void a_page_that_is_too_large_is_asked_for_in_parts(void **state)
{
        struct kube_store *f = kube_store_new();

        (void) state;
        for (int i = 0; i < 4; i++)
                kube_store_admin(f,
                                 "{\"op\":\"put\",\"fill\":9000000,\"path\":\"" KUBE_STORE_PODS
                                 "\",\"object\":{\"metadata\":{\"name\":\"p%d\"}}}",
                                 i);
        kube_store_open_pods(f);
        assert_int_equal(json_object_size(f->objects), 4);
        assert_int_equal(kube_store_count_requests(f, "limit="), 3);
        assert_int_equal(kube_store_count_requests(f, "limit=500"), 1);
        assert_int_equal(kube_store_count_requests(f, "limit=3"),
                         2); /* as many as came before it was too much */
        assert_int_equal(kube_store_count_requests(f, "limit=3&continue="), 1);
        assert_int_equal(json_array_size(f->troubles), 0);
        kube_store_free(f);
}

/* A server that is behind the version it is asked for (restored from a backup) says 504: read anew. */
static void a_watch_from_the_future_means_a_new_list(void **state)
{
        struct kube_store *f = kube_store_new();

        (void) state;
        kube_store_put_pod(f, "a", "u-a", NULL);
        kube_store_open_pods(f);
        kube_store_admin(
                f, "{\"op\":\"fault\",\"match\":\"watch=1\",\"times\":1,\"do\":\"status\",\"code\":504}");
        kube_store_admin(f, "{\"op\":\"drop\"}");
        KUBE_STORE_WAIT(f, f->synced[STORE_POD] == 2);
        if (kube_store_count_requests(f, "limit=") != 2)
                fail_msg("%s; troubles %s", json_dumps(f->stats, 0), json_dumps(f->troubles, 0));
        kube_store_free(f);
}

static void a_silent_watch_is_begun_anew(void **state)
{
        struct kube_store *f = kube_store_new();

        (void) state;
        f->silence_usec = 300000;
        kube_store_open_pods(f);
        kube_store_run_for(f, 600000); /* a server without bookmarks may be silent */
        assert_int_equal(json_array_size(f->troubles), 0);
        kube_store_admin(f, "{\"op\":\"bookmark\"}");
        KUBE_STORE_WAIT(f, kube_store_said(f, "silent for"));
        assert_true(store_age_usec(f->store, 1u << STORE_POD, clock_monotonic_usec()) >= 300000);
        kube_store_admin(f, "{\"op\":\"put\",\"path\":\"" KUBE_STORE_PODS
                            "\",\"object\":{\"metadata\":{\"name\":\"a\"}}}");
        KUBE_STORE_WAIT(f, kube_store_has(f, "Pod default/a"));
        assert_int_equal(kube_store_count_requests(f, "limit="), 1);
        assert_int_equal(f->deliveries, 1);
        kube_store_free(f);
}

static void no_server_is_not_fatal(void **state)
{
        struct kube_store *f = kube_store_new();

        (void) state;
        (void) kill(f->pid, SIGKILL);
        (void) waitpid(f->pid, NULL, 0);
        kube_store_open(f, 1u << STORE_POD, NULL);
        kube_store_run_for(f, 500000);
        assert_true(json_array_size(f->troubles) >= 1);
        assert_true(store_age_usec(f->store, STORE_ALL_KINDS, clock_monotonic_usec()) > 300000);
        kube_store_free(f);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(lists_and_watches),
                cmocka_unit_test(a_long_list_comes_in_pages),
                cmocka_unit_test(only_the_pods_of_one_node),
                cmocka_unit_test(only_what_is_in_some_namespaces),
                cmocka_unit_test(a_namespace_without_rights_stops_no_other),
                cmocka_unit_test(a_namespace_is_read_when_its_list_is_whole),
                cmocka_unit_test(a_dropped_watch_resumes_where_it_was),
                cmocka_unit_test(history_that_is_gone_means_a_new_list),
                cmocka_unit_test(bookmarks_keep_the_place),
                cmocka_unit_test(events_may_come_in_any_pieces),
                cmocka_unit_test(a_rotated_token_is_read_again),
                cmocka_unit_test(a_404_takes_nothing_that_is_known),
                cmocka_unit_test(an_optional_kind_is_missing_without_a_word),
                cmocka_unit_test(what_is_not_shown_in_one_namespace_is_said_of_it),
                cmocka_unit_test(a_kind_that_is_not_installed_is_empty_until_it_is),
                cmocka_unit_test(an_unwell_server_makes_the_store_old_not_empty),
                cmocka_unit_test(one_odd_object_stops_nothing),
                cmocka_unit_test(an_item_without_a_name_stops_nothing),
                cmocka_unit_test(a_page_that_is_too_large_is_asked_for_in_parts),
                cmocka_unit_test(a_watch_from_the_future_means_a_new_list),
                cmocka_unit_test(a_silent_watch_is_begun_anew),
                cmocka_unit_test(no_server_is_not_fatal),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
