/* What is wrong with a planner's input is told with its place and how to mend it; what is right is taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "planner/models/network_json.h"
#include "planner/segments/plan_profile.h"
#include "planner/segments/plan_segments.h"
#include "planner/shards/plan_reshard.h"
#include "planner/shards/plan_shards.h"
#include "planner/speeds/speed_table.h"
#include "planner/splits/graph_split.h"
#include "planner/splits/plan_graph.h"
#include "planner/splits/plan_split.h"

static int network(const json_t *json, const char *text, struct err *err)
{
        struct network read;
        int r = network_json_decode(json, &read, err);

        (void) text;
        if (r == 0)
                network_free(&read);
        return r;
}

static int profile(const json_t *json, const char *text, struct err *err)
{
        struct plan_segments_request request;
        int r = plan_profile_read(text, strlen(text), 1, &request, err);

        (void) json;
        if (r == 0)
                plan_segments_request_free(&request);
        return r;
}

static int segments(const json_t *json, const char *text, struct err *err)
{
        struct plan_segments_request request;
        int r = plan_segments_request_decode(json, &request, err);

        (void) text;
        if (r == 0)
                plan_segments_request_free(&request);
        return r;
}

static int reshard(const json_t *json, const char *text, struct err *err)
{
        struct plan_reshard_request request;
        int r = plan_reshard_request_decode(json, &request, err);

        (void) text;
        if (r == 0)
                plan_reshard_request_free(&request);
        return r;
}

static int shards(const json_t *json, const char *text, struct err *err)
{
        struct plan_shards_request request;
        int r = plan_shards_request_decode(json, NULL, NULL, &request, err);

        (void) text;
        if (r == 0)
                plan_shards_request_free(&request);
        return r;
}

static int split(const json_t *json, const char *text, struct err *err)
{
        struct plan_split_input input;
        int r = plan_split_input_decode(json, &input, err);

        (void) text;
        if (r == 0)
                plan_split_input_free(&input);
        return r;
}

/* The rows of layer "a", after the rest. */
static int rows_of_a(const json_t *json, const char *text, struct err *err)
{
        struct plan_split_input input;
        json_t *answer = NULL;
        int r = plan_split_input_decode(json, &input, err);

        (void) text;
        if (r < 0)
                return r;
        r = plan_split_rows(&input, "a", &answer, err);
        json_decref(answer);
        plan_split_input_free(&input);
        return r;
}

static int graph(const json_t *json, const char *text, struct err *err)
{
        struct plan_graph_request request;
        int r = plan_graph_request_decode(json, false, &request, err);

        (void) text;
        if (r == 0)
                plan_graph_request_free(&request);
        return r;
}

/* The plan itself, where one fits. */
static int split_over(const json_t *json, const char *text, struct err *err)
{
        struct plan_split_input input;
        struct chain_plan plan = { 0 };
        int r = plan_split_input_decode(json, &input, err);

        (void) text;
        if (r < 0)
                return r;
        r = chain_split(&input.problem, &plan, err);
        chain_plan_free(&plan);
        plan_split_input_free(&input);
        return r;
}

static int place(const json_t *json, const char *text, struct err *err)
{
        const struct graph_search search = { .seed = 1, .effort = 1000 };
        struct plan_graph_request request;
        struct graph_plan plan = { 0 };
        int r = plan_graph_request_decode(json, false, &request, err);

        (void) text;
        if (r < 0)
                return r;
        r = graph_split(&request.problem, &search, &plan, err);
        graph_split_plan_free(&plan);
        plan_graph_request_free(&request);
        return r;
}

static int speeds(const json_t *json, const char *text, struct err *err)
{
        struct speed_table table;
        int r = speed_table_decode(json, &table, err);

        (void) text;
        if (r == 0)
                speed_table_free(&table);
        return r;
}

#define CONV                "\"name\":\"a\",\"type\":\"conv\",\"output\":[8,4,4],\"inner\":4,\"kernel\":[3,3]"
#define OPS(ops)            "{\"operators\":[" ops "]}"
#define PLAN(workers, rest) "{\"plan\":{\"batch\":10,\"workers\":[" workers "]},\"cost_ms\":0," rest "}"
#define A_ALL               "{\"name\":\"a\",\"batch\":10,\"begin\":0,\"end\":100}"
#define GOES_ON             "\"position\":10,\"measured\":[{\"name\":\"a\",\"step_ms\":1}]"
#define TENSORS             "\"tensors\":[{\"name\":\"t\",\"bytes\":5,\"ready_ms\":3}]"
#define DEVICE              "\"devices\":[{\"type\":\"x\",\"bytes_per_ms\":1,\"memory_bytes\":100}]"
#define NODE(id)            "{\"id\":" id ",\"cpuLatency\":1,\"fpgaLatency\":1,\"supportedOnFpga\":1}"

/* clang-format off */
static const struct {
        int (*read)(const json_t *json, const char *text, struct err *err);
        const char *text, *sentence; /* a part of it; "" = it is taken */
} rows[] = {
        { network, OPS("{" CONV "}"), "" },
        { network, OPS(""), "operators: must not be empty" },
        { network, OPS("{\"name\":\"a\",\"type\":\"pool\"}"), "operators[0].output: must be 1 to 6 sizes of 1 or more" },
        { network, OPS("{\"name\":\"a\",\"type\":\"pool\",\"output\":[16777216,16777217]}"), "operators[0].output: must be 1 to 6 sizes" },
        { network, OPS("{\"name\":\"a\",\"type\":\"linear\",\"output\":[2]}"), "operators[0]: a linear needs what it sums over" },
        { network, OPS("{\"name\":\"a\",\"type\":\"linear\",\"output\":[281474976710656],\"inner\":65536}"), "operators[0]: has more than 2^60 multiply-adds" },
        { network, OPS("{\"name\":\"a\",\"type\":\"conv\",\"output\":[8],\"inner\":281474976710656,\"kernel\":[65536,65536]}"), "operators[0]: has more than 2^60" },
        { network, OPS("{\"name\":\"a\",\"type\":\"conv\",\"output\":[8],\"inner\":4}"), "operators[0]: groups must divide" },
        { network, OPS("{" CONV ",\"groups\":3}"), "operators[0]: groups must divide the input channels" },
        { network, OPS("{" CONV "},{" CONV "}"), "operators: two are called 'a'" },
        { network, OPS("{" CONV ",\"inputs\":[\"b\"]}"), "operators[0].inputs[0]: 'b' does not stand before" },
        { network, OPS("{" CONV ",\"inputs\":[7]}"), "operators[0].inputs[0]: must be a name" },
        { network, OPS("{" CONV ",\"inputs\":[]}"), "" },
        { network, OPS("{" CONV ",\"inputs\":[\"input\"]},{\"name\":\"b\",\"type\":\"join\",\"output\":[1],\"inputs\":[\"a\",\"input\"]}"), "" },
        { network, OPS("{" CONV ",\"inputs\":7}"), "operators[0].inputs: must be a list" },
        { network, OPS("{\"name\":\"a\",\"type\":\"conv\",\"output\":[8,4],\"inner\":4,\"kernel\":[3]}"), "" },
        { network, OPS("{" CONV ",\"weights\":281474976710657}"), "operators[0].weights" },

        { profile, "node1 -- A -- backward_compute_time=1.5, parameter_size=8\n\tnode1 -- node2\nnode2 -- B -- backward_compute_time=1, parameter_size=0\n", "" },
        { profile, "", "has no layers" },
        { profile, "layer1\n", "line 1: must begin with 'nodeN -- '" },
        { profile, "node -- A\n", "line 1: must begin with 'nodeN -- '" },
        { profile, "node12345678901234567890 -- A\n", "line 1: must begin with 'nodeN -- '" },
        { profile, "\nnode1 -- A -- parameter_size=8\n", "line 2: node1 needs backward_compute_time=MS, 0 or more" },
        { profile, "node1 -- backward_compute_time=-1, parameter_size=8\n", "line 1: node1 needs backward_compute_time=MS" },
        { profile, "node1 -- backward_compute_time=x, parameter_size=8\n", "line 1: node1 needs backward_compute_time=MS" },
        { profile, "node1 -- backward_compute_time=1-2, parameter_size=8\n", "line 1: node1 needs backward_compute_time=MS" },
        { profile, "node1 -- backward_compute_time=1\n", "line 1: node1 needs parameter_size=BYTES, 0 or more" },
        { profile, "node1 -- backward_compute_time=1, parameter_size=1e30\n", "line 1: node1 needs parameter_size=BYTES" },
        { profile, "node1 -- backward_compute_time=1, parameter_size=11111111111111111111111111111111111111111111111111111111111111111\n", "node1 needs parameter_size" },
        { profile, "node1 -- backward_compute_time=1, parameter_size=8\nnode1 -- backward_compute_time=1, parameter_size=8\n", "node1 stands twice" },
        { profile, "node1 -- backward_compute_time=1, parameter_size=0", "has no layer with parameters" },

        { segments, "{" TENSORS ",\"alpha_ms\":1,\"beta_ms_per_byte\":1}", "" },
        { segments, "{" TENSORS ",\"cost\":[[1,1],[2,1]]}", "" },
        { segments, "{" TENSORS ",\"levels\":[{\"alpha_ms\":1,\"beta_ms_per_byte\":1}]}", "" },
        { segments, "{" TENSORS ",\"beta_ms_per_byte\":1}", "alpha_ms: is missing" },
        { segments, "{" TENSORS ",\"alpha_ms\":1,\"beta_ms_per_byte\":1,\"cost\":[[1,1]]}", "say the same thing in several ways" },
        { segments, "{" TENSORS ",\"levels\":[{\"alpha_ms\":1}]}", "levels[0].beta_ms_per_byte: is missing" },
        { segments, "{" TENSORS ",\"cost\":[[1]]}", "cost[0]" },
        { segments, "{" TENSORS ",\"cost\":[[1,-1]]}", "cost[0]" },
        { segments, "{" TENSORS ",\"cost\":[[1,1],[1,1]]}", "cost[1]: must have more bytes than the point before" },

        { reshard, PLAN(A_ALL, GOES_ON), "" },
        { reshard, PLAN("{\"name\":\"a\",\"batch\":10,\"ranges\":[[0,50],[50,100]]}", GOES_ON), "" },
        { reshard, PLAN("{\"name\":\"a\",\"batch\":10,\"ranges\":[[50,20]]}", GOES_ON), "plan.workers[0].ranges[0]: must not end before it begins" },
        { reshard, PLAN("{\"name\":\"a\",\"batch\":10,\"ranges\":[[0,1.5]]}", GOES_ON), "plan.workers[0].ranges[0]: must not end before" },
        { reshard, PLAN("{\"name\":\"a\",\"batch\":10}", GOES_ON), "plan.workers[0].begin: is missing" },
        { reshard, PLAN("{\"name\":\"a\",\"batch\":10,\"begin\":0}", GOES_ON), "plan.workers[0].end: is missing" },
        { reshard, PLAN("{\"name\":\"a\",\"batch\":10,\"begin\":9,\"end\":5}", GOES_ON), "plan.workers[0].end: must be a whole number in 9.." },
        { reshard, PLAN("{\"name\":\"a\",\"batch\":9,\"begin\":0,\"end\":100}", GOES_ON), "plan.workers: shares of 9 in all do not make the batch of 10" },
        { reshard, PLAN("{\"name\":\"a\",\"batch\":5,\"begin\":0,\"end\":50},{\"name\":\"a\",\"batch\":5,\"begin\":50,\"end\":100}", GOES_ON), "plan.workers[1].name: 'a' is also" },
        { reshard, PLAN("{\"name\":\"a\",\"batch\":5,\"begin\":0,\"end\":60},{\"name\":\"b\",\"batch\":5,\"begin\":50,\"end\":100}",
                        "\"position\":10,\"measured\":[{\"name\":\"a\",\"step_ms\":1},{\"name\":\"b\",\"step_ms\":1}]"), "plan.workers: hold sample 50 twice" },
        { reshard, PLAN(A_ALL, "\"position\":110,\"measured\":[{\"name\":\"a\",\"step_ms\":1}]"), "position: 110 is beyond the epoch's 100 samples" },
        { reshard, PLAN(A_ALL, "\"position\":15,\"measured\":[{\"name\":\"a\",\"step_ms\":1}]"), "position: 15 is within a step of 10 samples; give 10 or 20" },
        { reshard, PLAN(A_ALL, "\"position\":100,\"measured\":[{\"name\":\"a\",\"step_ms\":1}]"), "" },
        { reshard, "{\"plan\":{\"batch\":10,\"position\":20,\"workers\":[" A_ALL "]},\"cost_ms\":0," GOES_ON "}", "position: 10 is before the plan in force began, at 20" },
        { reshard, PLAN(A_ALL, "\"position\":10,\"measured\":[{\"name\":\"a\",\"step_ms\":0}]"), "measured[0].step_ms" },
        { reshard, PLAN(A_ALL, "\"position\":10,\"measured\":[{\"name\":\"a\",\"step_ms\":1,\"pace\":1}]"), "measured[0].pace: is not known here" },
        { reshard, PLAN(A_ALL, "\"position\":10,\"measured\":[{\"name\":\"a\"}]"), "measured[0]: has no speed" },
        { reshard, PLAN(A_ALL, "\"position\":10,\"measured\":[{\"name\":\"a\",\"device\":\"H100\"}]"), "measured[0]: has no speed" },
        { reshard, PLAN(A_ALL, "\"position\":10,\"measured\":[{\"name\":\"a\",\"step_ms\":1},{\"name\":\"b\",\"step_ms\":1}]"), "measured[1].step_ms: is of a worker without a share" },
        { reshard, PLAN(A_ALL ",{\"name\":\"b\",\"batch\":0,\"begin\":0,\"end\":0}", GOES_ON), "" },
        { reshard, PLAN(A_ALL, "\"position\":10,\"measured\":[{\"name\":\"a\",\"gone\":true},{\"name\":\"b\",\"speed\":1}]"), "" },
        { reshard, PLAN(A_ALL, "\"position\":10,\"measured\":[{\"name\":\"a\",\"step_ms\":1},{\"name\":\"a\",\"step_ms\":1}]"), "measured[1].name: 'a' is also" },

        { shards, "{\"batch\":10,\"workers\":[{\"name\":\"a\",\"table\":[[0,0],[1,1]]}]}", "" },
        { shards, "{\"batch\":10,\"workers\":[{\"name\":\"a\",\"table\":[[0,0]]}]}", "workers[0].table: has no point beyond [0, 0]" },
        { shards, "{\"batch\":10,\"workers\":[{\"name\":\"a\",\"table\":[[0,1],[1,1]]}]}", "workers[0].table[0]: must have more samples" },
        { shards, "{\"batch\":10,\"workers\":[{\"name\":\"a\",\"beta_ms\":1}]}", "workers[0].alpha_ms: is missing" },
        { shards, "{\"batch\":10,\"workers\":[{\"name\":\"a\",\"alpha_ms\":1}]}", "workers[0].beta_ms: is missing" },
        { shards, "{\"batch\":10,\"workers\":[{\"name\":\"a\",\"speed\":1,\"alpha_ms\":1,\"beta_ms\":1}]}", "workers[0]: has more than one kind of speed" },
        { shards, "{\"batch\":10,\"workers\":[{\"name\":\"a\"}]}", "workers[0]: has no speed" },
        { shards, "{\"batch\":10,\"workers\":[{\"name\":\"a\",\"device\":\"H100\"}]}", "workers[0].device: has its speed in a store; give --store" },
        { shards, "{\"batch\":10}", "workers: is missing" },
        { shards, "{\"batch\":10,\"workers\":[{\"name\":\"a\",\"speed\":1}],\"groups\":[{\"name\":\"g\",\"workers\":[{\"name\":\"a\",\"speed\":1}]}]}", "workers: stands beside groups" },
        { shards, "{\"batch\":10,\"groups\":[{\"name\":\"g\",\"workers\":[{\"name\":\"a\",\"speed\":1}]},{\"name\":\"g\",\"workers\":[{\"name\":\"a\",\"speed\":1}]}]}", "groups[1].name: 'g' is also" },
        { shards, "{\"batch\":10,\"groups\":[{\"name\":\"g\",\"workers\":[{\"name\":\"a\",\"device\":\"x\"}]}]}", "groups[0].workers[0].device: has its speed in a store" },
        { shards, "{\"batch\":10,\"workers\":[{\"name\":\"a\",\"speed\":1}],\"communication\":{\"alpha_ms\":1,\"beta_ms_per_byte\":1}}", "communication.bytes: is missing" },

        { split, "{\"layers\":[{\"name\":\"a\",\"ms\":{\"x\":1}}]," DEVICE "}", "" },
        { split, "{\"layers\":[{\"name\":\"a\"}]," DEVICE "}", "layers[0]: has no ms: time by device type" },
        { split, "{\"layers\":[{\"name\":\"a\",\"ms\":7}]," DEVICE "}", "layers[0].ms: must be an object" },
        { split, "{\"layers\":[{\"name\":\"a\",\"ms\":{\"y\":1}}]," DEVICE "}", "layers[0].ms: 'y' is no declared device type" },
        { split, "{\"layers\":[{\"name\":\"a\",\"ms\":{\"x\":-1}}]," DEVICE "}", "layers[0].ms.x: must be a number" },
        { split, "{\"layers\":[{\"name\":\"a\",\"ms\":{\"x\":null}}]," DEVICE "}", "layers[0].ms: 'x' is null; leave the type out" },
        { split, "{\"layers\":[{\"name\":\"a\",\"ms\":{\"x\":1}},{\"name\":\"a\",\"ms\":{\"x\":1}}]," DEVICE "}", "layers[1].name: 'a' is also" },
        { split, "{\"layers\":[{\"name\":\"a\",\"ms\":{\"x\":1}}],\"devices\":[{\"type\":\"x\",\"bytes_per_ms\":1},{\"type\":\"x\",\"bytes_per_ms\":1}]}", "devices[1]: type 'x' is declared before" },
        { split, "{\"layers\":[{\"name\":\"a\",\"ms\":{\"x\":1}}]," DEVICE ",\"schedule\":\"zb\"}", "schedule: must be one of 1f1b, gpipe, inference" },
        { rows_of_a, "{\"layers\":[{\"name\":\"a\",\"ms\":{\"x\":1},\"rows\":7}]," DEVICE "}", "" },
        { rows_of_a, "{\"layers\":[{\"name\":\"b\",\"ms\":{\"x\":1},\"rows\":7}]," DEVICE "}", "no layer is named 'a'" },
        { rows_of_a, "{\"layers\":[{\"name\":\"a\",\"ms\":{\"x\":1}}]," DEVICE "}", "layers[0]: has no rows" },
        { rows_of_a, "{\"layers\":[{\"name\":\"a\",\"ms\":{\"x\":1},\"rows\":2,\"memory_bytes\":1000}]," DEVICE "}", "layers[0]: no device can hold even one row" },
        { rows_of_a, "{\"layers\":[{\"name\":\"a\",\"ms\":{},\"rows\":2}]," DEVICE "}", "layers[0]: no device can hold even one row" },
        { rows_of_a, "{\"layers\":[{\"name\":\"a\",\"ms\":{\"x\":1},\"rows\":10,\"memory_bytes\":1000}]," DEVICE "}", "layers[0].rows: " },

        { graph, "{\"maxFPGAs\":1,\"nodes\":[" NODE("1") "]}", "" },
        { graph, "{\"nodes\":[" NODE("1") "]}", "maxFPGAs (or types) must be given" },
        { graph, "{\"maxFPGAs\":1,\"nodes\":[]}", "nodes: must not be empty" },
        { graph, "{\"maxFPGAs\":1,\"nodes\":[" NODE("1") "," NODE("1") "]}", "nodes[1].id: 1 is also the id of nodes[0]" },
        { graph, "{\"maxFPGAs\":1,\"nodes\":[{\"id\":1,\"cpuLatency\":1}]}", "nodes[0].fpgaLatency: is missing" },
        { graph, "{\"maxFPGAs\":1,\"nodes\":[{\"id\":1,\"cpuLatency\":1,\"supportedOnFpga\":false,\"isBackwardNode\":2}]}", "nodes[0].isBackwardNode: must be a whole number in 0..1" },
        { graph, "{\"maxFPGAs\":1,\"nodes\":[" NODE("1") "],\"edges\":[{\"sourceId\":1,\"destId\":2,\"cost\":1}]}", "edges[0]: destId 2 is the id of no node" },
        { graph, "{\"maxFPGAs\":1,\"nodes\":[" NODE("1") "],\"edges\":[{\"sourceId\":0,\"destId\":1,\"cost\":1}]}", "edges[0]: sourceId 0 is the id of no node" },
        { graph, "{\"maxFPGAs\":1,\"nodes\":[" NODE("1") "," NODE("2") "," NODE("3") "],\"edges\":[{\"sourceId\":1,\"destId\":2,\"cost\":1},{\"sourceId\":1,\"destId\":3,\"cost\":2}]}",
          "edges[1]: cost 2 differs from 1 of another edge out of the same node" },
        { graph, "{\"types\":[{\"name\":\"x\"},{\"name\":\"x\"}],\"nodes\":[" NODE("1") "]}", "types[1]: name 'x' is declared before" },
        { graph, "{\"maxFPGAs\":200,\"maxCPUs\":200,\"nodes\":[" NODE("1") "]}", "devices are more than" },

        { split_over, "{\"layers\":[{\"name\":\"a\",\"ms\":{\"x\":1}}]," DEVICE "}", "" },
        { split_over, "{\"layers\":[{\"name\":\"a\",\"ms\":{}}]," DEVICE "}", "layers[0] has no ms for any device that is there" },
        { split_over, "{\"layers\":[{\"name\":\"a\",\"ms\":{\"x\":1}}],\"devices\":[{\"type\":\"x\",\"bytes_per_ms\":1,\"count\":0}]}", "layers[0] has no ms for any device that is there" },
        { split_over, "{\"layers\":[{\"name\":\"a\",\"ms\":{\"x\":1},\"memory_bytes\":101}]," DEVICE "}", "layers[0] needs 101 bytes of memory, 1 more than any device" },
        { split_over, "{\"layers\":[{\"name\":\"a\",\"ms\":{\"x\":1},\"memory_bytes\":60},{\"name\":\"b\",\"ms\":{\"x\":1},\"memory_bytes\":60}]," DEVICE "}", "the layers do not fit into the devices' memory in any order" },
        { split_over, "{\"layers\":[{\"name\":\"a\",\"ms\":{\"x\":1}}],\"devices\":[{\"type\":\"x\",\"bytes_per_ms\":1,\"count\":4096},{\"type\":\"y\",\"bytes_per_ms\":1,\"count\":4096}]}",
          "mixes of devices: too many to solve exactly" },
        { place, "{\"maxFPGAs\":1,\"nodes\":[" NODE("1") "]}", "" },
        { place, "{\"maxFPGAs\":0,\"nodes\":[" NODE("1") "]}", "cannot run on an accelerator and there is no CPU" },
        { place, "{\"maxFPGAs\":1,\"nodes\":[{\"id\":1,\"cpuLatency\":1,\"supportedOnFpga\":false}]}", "cannot run on an accelerator and there is no CPU" },
        { place, "{\"maxFPGAs\":1,\"maxSizePerFPGA\":10,\"nodes\":[{\"id\":1,\"cpuLatency\":1,\"fpgaLatency\":1,\"size\":11}]}", "need 11 bytes, 1 more than any accelerator" },
        { place, "{\"maxFPGAs\":1,\"maxSizePerFPGA\":10,\"nodes\":[{\"id\":1,\"cpuLatency\":1,\"fpgaLatency\":1,\"size\":6},{\"id\":2,\"cpuLatency\":1,\"fpgaLatency\":1,\"size\":6}]}", "no placement fits into the accelerators' memory" },

        { speeds, "{\"kind\":\"SpeedTable\",\"speeds\":{\"p/m/d\":{\"alpha_ms\":1,\"beta_ms\":1}}}", "" },
        { speeds, "{}", "" },
        { speeds, "[]", "a SpeedTable is needed, an object" },
        { speeds, "{\"kind\":\"Pod\"}", "kind: 'Pod' is not SpeedTable" },
        { speeds, "{\"speeds\":[]}", "speeds: an object is needed" },
        { speeds, "{\"spec\":{\"speeds\":7}}", "speeds: an object is needed" },
};
/* clang-format on */

static void what_is_wrong_is_told_with_its_place(void **state)
{
        size_t wrong = 0;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                json_t *json =
                        rows[i].read == profile ? NULL : json_loads(rows[i].text, JSON_DECODE_ANY, NULL);
                struct err err = { 0 };
                int r;

                if (json == NULL && rows[i].read != profile)
                        fail_msg("row %zu is no JSON: %s", i, rows[i].text);
                r = rows[i].read(json, rows[i].text, &err);
                if ((r == 0) != (rows[i].sentence[0] == '\0') || strstr(err.msg, rows[i].sentence) == NULL) {
                        print_error("%s\n  want '%s', got %d '%s'\n", rows[i].text, rows[i].sentence, r,
                                    err.msg);
                        wrong++;
                }
                json_decref(json);
        }
        assert_int_equal(wrong, 0);
}

/* The shares of a fast chip and of one that is a hundred times slower. */
static void expect_shares(const char *text, uint64_t fast, uint64_t slow)
{
        struct plan_speeds_chip chips[] = { { .model = "fast", .figures.tflops = { 100, 100, 100 } },
                                            { .model = "slow", .figures.tflops = { 1, 1, 1 } } };
        const struct plan_speeds_known known = { .chips = chips, .chip_count = ARRAY_SIZE(chips) };
        json_t *json = json_loads(text, 0, NULL);
        struct plan_shards_request request;
        struct plan_shards_answer answer;
        struct err err = { 0 };

        if (plan_shards_request_decode(json, &known, "mlp", &request, &err) < 0 ||
            plan_shards_request_answer(&request, false, &answer, &err) < 0)
                fail_msg("%s: %s", text, err.msg);
        assert_int_equal(answer.shards[0].batch, fast);
        assert_int_equal(answer.shards[1].batch, slow);
        assert_int_equal(answer.plan.used, (fast > 0) + (slow > 0));
        plan_shards_answer_free(&answer);
        plan_shards_request_free(&request);
        json_decref(json);
}

/* As every other way to cut the batch of a job. */
static void ranks_of_a_job_have_a_sample_each(void **state)
{
        (void) state;
        expect_shares("{\"batch\":8,\"workers\":[{\"name\":\"a\",\"device\":\"fast\"},{\"name\":\"b\","
                      "\"device\":\"slow\"}]}",
                      7, 1);
        expect_shares("{\"batch\":8,\"workers\":[{\"name\":\"a\",\"device\":\"fast\",\"multiple\":4},"
                      "{\"name\":\"b\",\"device\":\"slow\"}]}",
                      8, 0);
        expect_shares(
                "{\"batch\":8,\"workers\":[{\"name\":\"a\",\"speed\":100},{\"name\":\"b\",\"speed\":1}]}", 8,
                0);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_wrong_is_told_with_its_place),
                cmocka_unit_test(ranks_of_a_job_have_a_sample_each),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
