/* Placements of a replay against an independent account of chips. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/text.h"
#include "scheduler-extender/replay/replay.h"
#include "scheduler-extender/replay/trace_csv.h"

#define NODES 30
#define PODS  400

/* An independent account of what the placements claim. */
struct account {
        const struct replay_node *nodes;
        const struct replay_pod *pods;
        uint32_t cpu[NODES], memory[NODES], chip[NODES][8];
        size_t arrived;
        double allocated;
};

static bool would_fit(const struct account *a, size_t n, const struct fragmentation_pod *pod)
{
        uint32_t usable = 0;

        for (uint32_t c = 0; c < a->nodes[n].chips; c++)
                usable += a->chip[n][c] >= pod->milli;
        return a->cpu[n] >= pod->cpu_milli && a->memory[n] >= pod->memory_mib && usable >= pod->chips &&
               (pod->chips == 0 || pod->models == 0 || (pod->models >> a->nodes[n].model & 1));
}

static void keep_account(void *userdata, const struct replay_placement *p)
{
        struct account *a = userdata;
        const struct fragmentation_pod *pod = &a->pods[p->pod].request;

        a->arrived++;
        if (p->node < 0) {
                for (size_t n = 0; n < NODES; n++)
                        if (would_fit(a, n, pod))
                                fail_msg("arrival %zu was dropped, but fits on node %zu", a->arrived, n);
                return;
        }
        assert_true(would_fit(a, (size_t) p->node, pod));
        assert_int_equal(p->chips, pod->chips);
        a->cpu[p->node] -= pod->cpu_milli;
        a->memory[p->node] -= pod->memory_mib;
        for (size_t i = 0; i < p->chips; i++) {
                assert_true(a->chip[p->node][p->chip[i]] >= pod->milli);
                a->chip[p->node][p->chip[i]] -= pod->milli;
        }
        a->allocated += pod->chips * pod->milli / 1000.0;
}

static void make_trace(uint64_t seed, struct replay_node *nodes, struct replay_pod *pods)
{
        static const uint32_t chips[] = { 1, 2, 4, 8 };

        memset(pods, 0, PODS * sizeof(*pods));
        for (size_t i = 0; i < NODES; i++)
                nodes[i] = (struct replay_node){ .cpu_milli = 64000,
                                                 .memory_mib = 100000,
                                                 .chips = chips[random_below(&seed, 4)],
                                                 .model = (uint8_t) random_below(&seed, 2) };
        for (size_t i = 0; i < PODS; i++) {
                struct fragmentation_pod *request = &pods[i].request;
                bool shared = random_below(&seed, 2) == 0;

                request->chips = shared ? 1 : random_below(&seed, 5) == 0 ? 0 : chips[random_below(&seed, 4)];
                request->milli = shared               ? (uint32_t) (1 + random_below(&seed, 99)) * 10
                                 : request->chips > 0 ? 1000
                                                      : 0;
                request->cpu_milli = (uint32_t) random_below(&seed, 9) * 1000;
                request->memory_mib = (uint32_t) random_below(&seed, 9) * 1000;
                request->models = random_below(&seed, 4) == 0 ? 1 : 0;
                pods[i].deleted_sec = 1 + random_below(&seed, 1000);
        }
}

static void placements_hold_up_and_nothing_that_fits_is_dropped(void **state)
{
        struct replay_node nodes[NODES];
        struct replay_pod pods[PODS];

        (void) state;
        for (uint64_t seed = 1; seed <= 12; seed++) {
                struct account a = { .nodes = nodes, .pods = pods };
                struct replay_options options = { .policy = (enum replay_policy)(seed % REPLAY_POLICY_COUNT),
                                                  .seed = seed,
                                                  .load = 1.3,
                                                  .placed = keep_account,
                                                  .userdata = &a };
                struct replay_result result;
                double capacity = 0;

                make_trace(seed, nodes, pods);
                for (size_t n = 0; n < NODES; n++) {
                        a.cpu[n] = nodes[n].cpu_milli;
                        a.memory[n] = nodes[n].memory_mib;
                        for (uint32_t c = 0; c < nodes[n].chips; c++)
                                a.chip[n][c] = 1000;
                        capacity += nodes[n].chips;
                }
                assert_int_equal(replay_run(nodes, NODES, pods, PODS, &options, &result, NULL), 0);
                assert_int_equal(a.arrived, result.arrived);
                assert_true(result.chips_requested >= 1.3 * capacity - 0.001);
                assert_true(result.chips_allocated - a.allocated < 1e-6 &&
                            a.allocated - result.chips_allocated < 1e-6);
        }
}

static void the_same_seed_gives_the_same_and_departures_end(void **state)
{
        struct replay_node nodes[NODES];
        struct replay_pod pods[PODS];
        struct replay_options options = {
                .policy = REPLAY_PACKED, .seed = 5, .load = 0.9, .departures = true
        };
        struct replay_result one, two;

        (void) state;
        make_trace(5, nodes, pods);
        assert_int_equal(replay_run(nodes, NODES, pods, PODS, &options, &one, NULL), 0);
        assert_int_equal(replay_run(nodes, NODES, pods, PODS, &options, &two, NULL), 0);
        assert_memory_equal(&one, &two, sizeof(one));
        assert_int_equal(one.arrived, PODS);
        assert_true(one.allocation_percent > 0 && one.allocation_percent <= 100);
}

static void impossible_traces_are_refused(void **state)
{
        struct replay_node node = { .chips = 1 }, none = { 0 };
        struct replay_pod pod = { .request = { .chips = 1, .milli = 1000 } }, idle = { 0 };
        struct replay_options options = { .load = 1 };
        struct replay_result result;

        (void) state;
        assert_int_equal(replay_run(&none, 1, &pod, 1, &options, &result, NULL), -EINVAL);
        assert_int_equal(replay_run(&node, 1, &idle, 1, &options, &result, NULL), -EINVAL);
        options.load = -1;
        assert_int_equal(replay_run(&node, 1, &pod, 1, &options, &result, NULL), -EINVAL);
}

static void a_trace_is_read_by_its_column_names(void **state)
{
        static const char nodes_text[] =
                "sn,gpu,cpu_milli,memory_mib,model\nn0,2,1000,5,T4\r\n\nn1,8,2,3,P100\n";
        static const char pods_text[] =
                "memory_mib,name,num_gpu,gpu_milli,cpu_milli,gpu_spec\n1,p0,1,460.0,3,T4|P100\n"
                "1,p1,2,1000,3,\n1,p2,0,0,3\n";
        struct trace_csv_models models = { 0 };
        struct trace_csv_nodes nodes;
        struct trace_csv_pods pods;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(trace_csv_nodes_decode(nodes_text, strlen(nodes_text), &models, &nodes, &err), 0);
        assert_int_equal(nodes.count, 2);
        assert_string_equal(nodes.names[1], "n1");
        assert_int_equal(nodes.nodes[1].chips, 8);
        assert_int_equal(trace_csv_pods_decode(pods_text, strlen(pods_text), &models, &pods, &err), 0);
        assert_int_equal(pods.count, 3);
        assert_int_equal(pods.pods[0].request.milli, 460);
        assert_int_equal(pods.pods[0].request.models, 3);
        assert_int_equal(pods.pods[1].request.models, 0);
        assert_int_equal(pods.pods[2].request.milli, 0);
        trace_csv_nodes_free(&nodes);
        trace_csv_pods_free(&pods);
        assert_int_equal(trace_csv_pods_decode("name\nx", 6, &models, &pods, &err), -EBADMSG);
        trace_csv_pods_free(&pods);
        assert_int_equal(
                trace_csv_nodes_decode("sn,gpu,cpu_milli,memory_mib\nn,-2,1,1", 36, &models, &nodes, &err),
                -EBADMSG);
        assert_non_null(strstr(err.msg, "line 2"));
        trace_csv_nodes_free(&nodes);
}

/* clang-format off */
#define NODES_OF "sn,gpu,cpu_milli,memory_mib,model\n"
#define PODS_OF  "name,num_gpu,cpu_milli,memory_mib,gpu_milli,gpu_spec,creation_time,deletion_time\n"
static const struct { bool pods; const char *text, *says; } traces[] = {
        { false, "",                              "is empty; the first line must name the columns" },
        { false, "\n\r\n",                     "is empty" },
        { false, "name,gpu,memory_mib\n",        "line 1: there is no column 'cpu_milli'" },
        { true,  "name,cpu_milli,memory_mib\n",  "line 1: there is no column 'num_gpu'" },
        { false, NODES_OF "n,1,x,1,\n",          "line 2: cpu_milli: 'x' is not a whole number" },
        { false, NODES_OF "n,1,1.5,1,\n",        "line 2: cpu_milli: '1.5' is not a whole number" },
        { false, NODES_OF "n,1,1,1e300,\n",      "line 2: memory_mib: '1e300' is not a whole number" },
        { false, NODES_OF "\nn,1,1,4294967296\n", "line 3: memory_mib: must be at most 4294967295, not '4294967296'" },
        { false, NODES_OF "n,1000000,1,1\n",     "line 2: num_gpu: must be at most" },
        { true,  PODS_OF "p,x,1,1\n",            "line 2: num_gpu" },
        { true,  PODS_OF "p,1,x,1\n",            "line 2: cpu_milli" },
        { true,  PODS_OF "p,1,1,x\n",            "line 2: memory_mib" },
        { true,  PODS_OF "p,1,1,1,1001\n",       "line 2: gpu_milli: must be at most 1000" },
        { true,  PODS_OF "p,1,1,1,,,-1\n",       "line 2: creation_time" },
        { true,  PODS_OF "p,1,1,1,,,,never\n",   "line 2: deletion_time" },
        { true,  PODS_OF "p,1,1,1,,A|a-model-whose-name-has-no-end-a-model-whose-name-has-no-end-at-all\n", "line 2: more than 64 models" },
        { false, NODES_OF "n,1,1,1,a-model-whose-name-has-no-end-a-model-whose-name-has-no-end-at-all\n",   "line 2: more than 64 models" },
};
/* clang-format on */

static int decode(bool of_pods, const char *text, size_t size, struct trace_csv_models *models,
                  struct err *err)
{
        struct trace_csv_nodes nodes;
        struct trace_csv_pods pods;
        int r;

        if (of_pods) {
                r = trace_csv_pods_decode(text, size, models, &pods, err);
                trace_csv_pods_free(&pods);
        } else {
                r = trace_csv_nodes_decode(text, size, models, &nodes, err);
                trace_csv_nodes_free(&nodes);
        }
        return r;
}

static void a_wrong_trace_says_which_line(void **state)
{
        struct trace_csv_models models = { .count = 0 };
        struct text many = { 0 };
        struct err err = { 0 };

        (void) state;
        for (size_t i = 0; i < sizeof(traces) / sizeof(traces[0]); i++)
                if (decode(traces[i].pods, traces[i].text, strlen(traces[i].text), &models, &err) !=
                            -EBADMSG ||
                    strstr(err.msg, traces[i].says) == NULL)
                        fail_msg("%s: want '%s', got '%s'", traces[i].text, traces[i].says, err.msg);
        assert_int_equal(decode(false, "sn\0gpu", 6, &models, &err), -EBADMSG);
        assert_non_null(strstr(err.msg, "zero byte"));
        text_append(&many, NODES_OF);
        for (int i = 0; i <= TRACE_MODELS_MAX; i++)
                text_printf(&many, "n%d,1,1,1,m%d\n", i, i);
        models.count = 0;
        assert_int_equal(decode(false, many.data, many.size_bytes, &models, &err), -EBADMSG);
        assert_non_null(strstr(err.msg, "line 66: more than 64 models"));
        text_free(&many);
        many = (struct text){ 0 }; /* more columns than any trace has: the rest is passed over */
        text_append(&many, "sn,gpu,cpu_milli,memory_mib");
        for (int i = 0; i < 100; i++)
                text_append(&many, ",x");
        assert_int_equal(decode(false, many.data, many.size_bytes, &models, &err), 0);
        text_free(&many);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(placements_hold_up_and_nothing_that_fits_is_dropped),
                cmocka_unit_test(the_same_seed_gives_the_same_and_departures_end),
                cmocka_unit_test(impossible_traces_are_refused),
                cmocka_unit_test(a_trace_is_read_by_its_column_names),
                cmocka_unit_test(a_wrong_trace_says_which_line),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
