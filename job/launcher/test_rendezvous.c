/* What manager and groups say to each other, and the cut of the work at two levels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "job/launcher/message.h"
#include "job/launcher/subtask_ranks.h"
#include "job/launcher/trust/proof.h"

static void an_order_survives_the_wire(void **state)
{
        char *argv[] = { (char *) "orted", (char *) "-mca", (char *) "" };
        Rendezvous__Order order = RENDEZVOUS__ORDER__INIT;
        const Rendezvous__Order *again;
        CLEANUP(free_p) uint8_t *bytes = NULL;
        struct pb_arena arena;
        struct err err = { 0 };
        size_t size;

        (void) state;
        order.id = 1ULL << 40;
        order.kind = RENDEZVOUS__ORDER__KIND__start;
        order.argv = argv;
        order.n_argv = 3;
        bytes = pb_pack(&order, &size);
        assert_non_null(bytes);
        again = message_read(&arena, &rendezvous__order__descriptor, bytes, size, &err);
        assert_non_null(again);
        assert_true(again->id == order.id && again->kind == order.kind && again->n_argv == 3);
        assert_string_equal(again->argv[2], "");
        assert_null(again->plan);
        pb_arena_free(&arena);
}

static void refused(const void *message, const char *says)
{
        const ProtobufCMessage *base = message;
        struct pb_arena arena;
        struct err err = { 0 };
        size_t size;
        CLEANUP(free_p) uint8_t *bytes = pb_pack(message, &size);

        if (message_read(&arena, base->descriptor, bytes, size, &err) != NULL ||
            strstr(err.msg, says) == NULL)
                fail_msg("want '%s', got '%s'", says, err.msg);
        assert_int_equal(err.code, -EBADMSG);
        pb_arena_free(&arena);
}

static void what_cannot_be_is_refused(void **state)
{
        Rendezvous__Join join = RENDEZVOUS__JOIN__INIT;
        Rendezvous__Order order = RENDEZVOUS__ORDER__INIT;
        char long_text[200];
        struct pb_arena arena;
        struct err err = { 0 };
        size_t size;
        CLEANUP(free_p) uint8_t *bytes = NULL;

        (void) state;
        memset(long_text, 'x', sizeof(long_text) - 1);
        long_text[sizeof(long_text) - 1] = '\0';
        join.group = (char *) "g1";
        refused(&join, "chips: 0 is not in 1..");
        join.chips = 1;
        join.group = (char *) "../g1";
        refused(&join, "group: '../g1'");
        join.group = (char *) "g1";
        join.runtime = long_text;
        refused(&join, "runtime: 199 bytes is not in 0..");
        join.runtime = (char *) "";
        join.program_sha256 = (char *) "0123";
        refused(&join, "program_sha256");
        join.program_sha256 = (char *) "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
        bytes = pb_pack(&join, &size);
        assert_non_null(message_read(&arena, &rendezvous__join__descriptor, bytes, size, &err));
        pb_arena_free(&arena);
        order.kind = (Rendezvous__Order__Kind) 9;
        refused(&order, "kind: 9");
        assert_null(
                message_read(&arena, &rendezvous__order__descriptor, (const uint8_t *) "\xff\xff", 2, &err));
        pb_arena_free(&arena);
}

/* Whatever is another one makes another proof: token, role, either nonce, the channel. */
static void a_proof_is_good_once_for_one_role_on_one_channel(void **state)
{
        static const struct {
                const char *what, *token, *role, *nonce, *own;
                uint8_t binding[TRANSPORT_BINDING_BYTES];
        } rows[] = {
                { "the one", "0123456789abcdef", PROOF_GROUP, "aa", "bb", { 1 } },
                { "another token", "0123456789abcdee", PROOF_GROUP, "aa", "bb", { 1 } },
                { "another role", "0123456789abcdef", PROOF_MANAGER, "aa", "bb", { 1 } },
                { "another connection", "0123456789abcdef", PROOF_GROUP, "ab", "bb", { 1 } },
                { "another asker", "0123456789abcdef", PROOF_GROUP, "aa", "bc", { 1 } },
                { "nonces cut elsewhere", "0123456789abcdef", PROOF_GROUP, "aab", "b", { 1 } },
                { "another server's certificate", "0123456789abcdef", PROOF_GROUP, "aa", "bb", { 2 } },
                { "no TLS", "0123456789abcdef", PROOF_GROUP, "aa", "bb", { 0 } },
        };
        char first[SHA256_HEX_BYTES], other[SHA256_HEX_BYTES];

        (void) state;
        proof_make(rows[0].token, rows[0].role, rows[0].nonce, rows[0].own, rows[0].binding, first);
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                proof_make(rows[i].token, rows[i].role, rows[i].nonce, rows[i].own, rows[i].binding, other);
                if (proof_matches(first, other) != (i == 0))
                        fail_msg("%s", rows[i].what);
        }
        assert_false(proof_matches(first, ""));
        assert_true(proof_nonce(first) && proof_nonce(other) && !proof_matches(first, other));
}

static const char plan_text[] =
        "{\"job\":\"j\",\"global_batch\":100,\"samples\":1000,\"segments\":[2,5],\"args\":[\"-v\"],"
        "\"environment\":{\"EXTRA\":"
        "\"1\"},\"groups\":["
        "{\"name\":\"a\",\"runtime\":\"cuda\",\"chips\":3,\"speed\":4},{\"name\":\"b\",\"runtime\":\"cpu\","
        "\"chips\":2,\"speed\":1}]}";

static const char *value_of(const json_t *environment, const char *name)
{
        return json_string_value(json_object_get(environment, name));
}

struct world {
        struct pb_arena arena;
        Subtask__Plan *plan;
};

static void open_plan(struct world *w, const char *text)
{
        json_t *value = json_loads(text, 0, NULL);
        struct err err = { 0 };

        assert_non_null(value);
        pb_arena_init(&w->arena, SUBTASK_ARENA_BYTES);
        if (subtask_read(value, &w->arena, &w->plan, &err) < 0)
                fail_msg("%s: %s", text, err.msg);
        for (size_t i = 0; i < w->plan->n_groups; i++) {
                snprintf(w->plan->groups[i]->address, SUBTASK_ADDRESS_BYTES, "10.0.0.%zu", i + 1);
                w->plan->groups[i]->port = 7000;
        }
        json_decref(value);
}

static void close_plan(struct world *w)
{
        pb_arena_free(&w->arena);
}

static const struct subtask_ranks_host host = { .folder = "/logs", .threads = 3 };

/* What the group is sent arrives whole. */
static int tell(const struct world *w, const char *group, struct subtask_ranks *ret, struct err *err)
{
        Subtask__Group groups[8], *list[8];
        Subtask__Plan plan = subtask_sent(w->plan, groups, list);
        Rendezvous__Order order = RENDEZVOUS__ORDER__INIT;
        const Rendezvous__Order *sent_order;
        CLEANUP(free_p) uint8_t *bytes = NULL;
        struct pb_arena arena;
        size_t size;
        int r;

        order.kind = RENDEZVOUS__ORDER__KIND__subtask;
        order.plan = &plan;
        bytes = pb_pack(&order, &size);
        sent_order = message_read(&arena, &rendezvous__order__descriptor, bytes, size, err);
        assert_non_null(sent_order);
        r = subtask_ranks(sent_order->plan, group, &host, ret, err);
        pb_arena_free(&arena);
        return r;
}

static const char *rank_value(const struct subtask_ranks *ranks, size_t rank, const char *name)
{
        return value_of(
                json_object_get(json_array_get(json_object_get(ranks->file, "ranks"), rank), "environment"),
                name);
}

static void the_work_is_cut_at_two_levels(void **state)
{
        struct subtask_ranks ranks;
        struct world w;
        struct err err = { 0 };
        json_int_t batch = 0;
        double weight = 0;
        json_t *table;

        (void) state;
        open_plan(&w, plan_text);
        assert_true(w.plan->world_size == 5 && w.plan->groups[0]->batch == 80 &&
                    w.plan->groups[1]->batch == 20);
        assert_true(w.plan->groups[1]->first_rank == 3 && w.plan->groups[1]->begin == 800 &&
                    w.plan->groups[1]->end == 1000);

        assert_int_equal(tell(&w, "a", &ranks, &err), 0);
        assert_int_equal(json_array_size(json_object_get(ranks.file, "ranks")), 3);
        /* 80 over three equal chips: 27 + 27 + 26, and 800 samples cut in the same places */
        assert_string_equal(rank_value(&ranks, 2, "REMUDA_BATCH"), "26");
        assert_string_equal(rank_value(&ranks, 2, "REMUDA_SHARD"), "540:800");
        assert_string_equal(rank_value(&ranks, 2, "RANK"), "2");
        assert_string_equal(rank_value(&ranks, 2, "WORLD_SIZE"), "5");
        assert_string_equal(rank_value(&ranks, 2, "MASTER_ADDR"), "10.0.0.1");
        assert_string_equal(rank_value(&ranks, 2, "CUDA_VISIBLE_DEVICES"), "2");
        assert_string_equal(rank_value(&ranks, 2, "PADDLE_TRAINER_ENDPOINTS"),
                            "10.0.0.1:7001,10.0.0.1:7002,10.0.0.1:7003,10.0.0.2:7001,10.0.0.2:7002");
        assert_string_equal(rank_value(&ranks, 2, "EXTRA"), "1");
        table = json_loads(ranks.table, JSON_REJECT_DUPLICATES, NULL);
        assert_string_equal(value_of(table, "server_count"), "2");
        assert_string_equal(value_of(table, "version"), "1.0");
        json_decref(table);
        /* as on one machine: weights that are 1 together, threads for its part of the host, every rank's part
         */
        assert_string_equal(rank_value(&ranks, 2, "REMUDA_WEIGHT"), "0.2599999999999909");
        assert_string_equal(rank_value(&ranks, 2, "OMP_NUM_THREADS"), "3");
        assert_string_equal(rank_value(&ranks, 2, "DEVICE_ID"), "2");
        assert_string_equal(rank_value(&ranks, 2, "REMUDA_SEGMENTS"), "2,5");
        assert_int_equal(json_array_size(json_object_get(ranks.plan, "ranks")), 5);
        for (size_t i = 0; i < 5; i++) {
                const json_t *rank = json_array_get(json_object_get(ranks.plan, "ranks"), i);

                batch += json_integer_value(json_object_get(rank, "batch"));
                weight += json_real_value(json_object_get(rank, "weight"));
        }
        assert_true(batch == 100 && weight == 1);
        /* a program reads the whole plan, but not how others are started */
        assert_int_equal(json_array_size(json_object_get(ranks.plan, "groups")), 2);
        assert_null(json_object_get(ranks.plan, "args"));
        assert_string_equal(value_of(json_object_get(ranks.plan, "environment"), "EXTRA"), "1");
        subtask_ranks_free(&ranks);
        close_plan(&w);
}

/* One chip was seen at half the others' speed, and the other group is gone. */
static void who_is_left_has_all_of_the_work(void **state)
{
        struct subtask_ranks ranks;
        struct world w;
        struct err err = { 0 };

        (void) state;
        open_plan(&w, plan_text);
        w.plan->groups[0]->n_chip_speeds = 3;
        w.plan->groups[0]->chip_speeds = (double[]){ 2, 1, 2 };
        w.plan->groups[1]->used = false;
        assert_int_equal(subtask_cut(w.plan, &err), 0);
        assert_true(w.plan->world_size == 3 && w.plan->groups[0]->batch == 100 &&
                    w.plan->groups[0]->end == 1000);
        assert_int_equal(tell(&w, "a", &ranks, &err), 0);
        assert_string_equal(rank_value(&ranks, 1, "REMUDA_BATCH"), "20");
        subtask_ranks_free(&ranks);
        assert_int_equal(tell(&w, "b", &ranks, &err), -EINVAL);
        close_plan(&w);
}

#define TWO_GROUPS(MORE, A, B)                                                                               \
        "{\"job\":\"j\",\"global_batch\":100" MORE                                                           \
        ",\"groups\":[{\"name\":\"a\",\"runtime\":\"cuda\",\"chips\":3,\"speed\":9" A                        \
        "},{\"name\":\"b\",\"runtime\":\"cpu\",\"chips\":2,\"speed\":1" B "}]}"

static void equal_shares_stay_equal(void **state)
{
        struct world w;
        struct err err = { 0 };

        (void) state;
        open_plan(&w, TWO_GROUPS(",\"shards\":\"equal\"", ",\"batch\":60", ",\"batch\":40"));
        assert_false(subtask_may_share_anew(w.plan));
        w.plan->world++; /* a fault: all of it once more */
        assert_int_equal(subtask_cut(w.plan, &err), 0);
        assert_true(w.plan->groups[0]->batch == 60 && w.plan->groups[1]->batch == 40);
        w.plan->groups[0]->used = false; /* and without a group, which comes back */
        assert_int_equal(subtask_cut(w.plan, &err), 0);
        assert_int_equal(w.plan->groups[1]->batch, 100);
        w.plan->groups[0]->used = true;
        assert_int_equal(subtask_cut(w.plan, &err), 0);
        assert_true(w.plan->groups[0]->batch == 60 && w.plan->groups[1]->batch == 40);
        close_plan(&w);
}

static void batches_that_are_given_stand(void **state)
{
        struct world w;
        struct err err = { 0 };

        (void) state;
        open_plan(&w, TWO_GROUPS("", ",\"batch\":70", ",\"batch\":30"));
        assert_true(w.plan->groups[0]->batch == 70 && w.plan->groups[1]->batch == 30);
        assert_int_equal(subtask_cut(w.plan, &err), 0);
        assert_true(w.plan->groups[0]->batch == 70 && w.plan->groups[1]->batch == 30);
        w.plan->groups[1]->used = false;
        assert_int_equal(subtask_cut(w.plan, &err), 0);
        w.plan->groups[1]->used = true; /* who takes part has changed: speeds decide */
        assert_int_equal(subtask_cut(w.plan, &err), 0);
        assert_true(w.plan->groups[0]->batch == 90 && w.plan->groups[1]->batch == 10);
        close_plan(&w);
}

static void assert_batches(const struct world *w, size_t group, uint32_t first, uint32_t second)
{
        const Subtask__Group *of = w->plan->groups[group];

        assert_int_equal(of->n_chip_batches, of->chips);
        assert_int_equal(of->chip_batches[0], first);
        assert_int_equal(of->chip_batches[1], second);
        assert_int_equal(of->batch, first + second);
}

/* What is in force when a world ends is the next one's; others have what was learned, with what is fixed in a
 * step: 40 + b and 60 + b ms with 60 and 40 samples take 100; alone they have 60 and 40, not half each. */
static void learned_shares_stand_and_learned_lines_cut(void **state)
{
        struct subtask_ranks ranks;
        struct world w;
        struct err err = { 0 };
        Subtask__Group *a;

        (void) state;
        open_plan(&w, "{\"job\":\"j\",\"global_batch\":100,\"groups\":["
                      "{\"name\":\"a\",\"runtime\":\"cpu\",\"chips\":2},"
                      "{\"name\":\"b\",\"runtime\":\"cpu\",\"chips\":2}]}");
        a = w.plan->groups[0];
        assert_batches(&w, 0, 25, 25);
        /* the ranks have taken others while they ran */
        a->batch = 30;
        a->chip_batches[0] = 20;
        a->chip_batches[1] = 10;
        w.plan->groups[1]->batch = 70;
        w.plan->groups[1]->chip_batches[0] = 30;
        w.plan->groups[1]->chip_batches[1] = 40;
        a->n_chip_speeds = a->n_chip_alpha_ms = 2;
        a->chip_speeds = (double[]){ 1000, 1000 };
        a->chip_alpha_ms = (double[]){ 40, 60 };
        a->speed = 600 + 400;
        assert_int_equal(subtask_cut(w.plan, &err), 0);
        assert_batches(&w, 0, 20, 10);
        assert_batches(&w, 1, 30, 40);
        assert_int_equal(tell(&w, "a", &ranks, &err), 0);
        assert_string_equal(rank_value(&ranks, 0, "REMUDA_BATCH"), "20");
        subtask_ranks_free(&ranks);
        assert_int_equal(tell(&w, "b", &ranks, &err), 0);
        assert_string_equal(rank_value(&ranks, 3, "REMUDA_BATCH"), "40");
        subtask_ranks_free(&ranks);
        w.plan->groups[1]->used = false; /* b is lost */
        assert_int_equal(subtask_cut(w.plan, &err), 0);
        assert_batches(&w, 0, 60, 40);
        w.plan->batches_given = false; /* after a straggler, by the same lines */
        a->chip_alpha_ms = (double[]){ 60, 40 };
        assert_int_equal(subtask_cut(w.plan, &err), 0);
        assert_batches(&w, 0, 40, 60);
        a->n_chip_batches = 1; /* who sends such a thing is refused */
        assert_int_equal(tell(&w, "a", &ranks, &err), -EINVAL);
        assert_non_null(strstr(err.msg, "chip_batches"));
        close_plan(&w);
}

static void a_split_keeps_its_stages(void **state)
{
        struct subtask_ranks ranks;
        struct world w;
        struct err err = { 0 };

        (void) state;
        open_plan(&w, TWO_GROUPS("",
                                 ",\"stages\":[{\"first\":0,\"last\":0},{\"first\":1,\"last\":1},"
                                 "{\"first\":2,\"last\":2}]",
                                 ",\"stages\":[{\"first\":3,\"last\":6},{\"first\":7,\"last\":9}]"));
        w.plan->world++;
        assert_int_equal(subtask_cut(w.plan, &err), 0);
        assert_true(w.plan->groups[0]->batch == 60 && w.plan->groups[1]->batch == 40);
        assert_int_equal(tell(&w, "b", &ranks, &err), 0);
        assert_string_equal(rank_value(&ranks, 3, "REMUDA_LAYERS"), "3:6");
        assert_string_equal(rank_value(&ranks, 4, "REMUDA_LAYERS"), "7:9");
        subtask_ranks_free(&ranks);
        w.plan->groups[0]->used = false; /* what is left holds the model no more: its program cuts it */
        assert_int_equal(subtask_cut(w.plan, &err), 0);
        assert_int_equal(tell(&w, "b", &ranks, &err), 0);
        assert_null(rank_value(&ranks, 0, "REMUDA_LAYERS"));
        subtask_ranks_free(&ranks);
        close_plan(&w);
}

/* clang-format off */
static const struct { const char *fields, *says; } plans[] = {
        { "",                                                                          "job: 1 to 63" },
        { "\"job\":\"j\"",                                                             "groups: a list" },
        { "\"job\":\"j\",\"groups\":[{}]",                                             "groups[0]: name" },
        { "\"job\":\"j\",\"groups\":[{\"name\":\"a\",\"runtime\":\"cpu\",\"chips\":0}]",  "groups[0]: chips" },
        { "\"job\":\"j\",\"groups\":[{\"name\":\"a\",\"runtime\":\"cpu\",\"chips\":1,\"role\":\"x\"}]", "role: worker or server" },
        { "\"job\":\"j\",\"groups\":[{\"name\":\"a\",\"runtime\":\"cpu\",\"chips\":1,\"batch\":3}]", "add up to global_batch, 8" },
        { "\"job\":\"j\",\"groups\":[{\"name\":\"a\",\"runtime\":\"cpu\",\"chips\":1,\"role\":\"server\"}]", "no worker is left" },
        { "\"job\":\"j\",\"groups\":[{\"name\":\"a\",\"runtime\":\"cpu\",\"chips\":1},{\"name\":\"b\",\"runtime\":\"cpu\",\"chips\":1,"
          "\"role\":\"server\"}]",                                                    "servers come before" },
        { "\"job\":\"j\",\"environment\":{\"LD_PRELOAD\":\"x\"}",                  "the loader's variables" },
        { "\"job\":\"j\",\"environment\":{\"A=B\":\"x\"}",                         "a name without '='" },
        { "\"job\":\"j\",\"restart\":[],\"groups\":[{\"name\":\"a\",\"runtime\":\"cpu\",\"chips\":1}]", "restart: an object" },
        { "\"job\":\"j\",\"shards\":\"by-luck\"",                                 "shards: weighted or equal" },
        { "\"job\":\"j\",\"groups\":[{\"name\":\"a\",\"runtime\":\"cpu\",\"chips\":2,\"stages\":[{\"first\":0,\"last\":1}]}]", "one for each of its chips, 2" },
        { "\"job\":\"j\",\"groups\":[{\"name\":\"a\",\"runtime\":\"cpu\",\"chips\":1,\"stages\":[{\"first\":2,\"last\":1}]}]", "stages[0]: first and last" },
        { "\"job\":\"j\",\"resume_args\":\"--resume\"",                              "resume_args: a list" },
        { "\"job\":\"j\",\"status_token\":\"short\"", "status_token: 16 to 63" },
        { "\"job\":\"j\",\"status_token\":\"0123456789012345678901234567890123456789012345678901234567890123\"", "status_token: 16 to 63" },
        { "\"job\":\"j\",\"environment\":{\"\":\"x\"}", "a name without '='" },
        { "\"job\":\"j\",\"groups\":[{\"name\":\"a\",\"runtime\":\"\",\"chips\":2}]", "runtime: the name" },
        { "\"job\":\"j\",\"groups\":[{\"name\":\"a\",\"runtime\":\"a-runtime-whose-name-has-no-end-a-runtime-whose-name-has-no-end\",\"chips\":2}]", "runtime: the name" },
        { "\"job\":\"j\",\"groups\":[{\"name\":\"a\",\"runtime\":\"cpu\",\"chips\":2,\"vendor\":\"twenty-four-letters-long\"}]", "vendor: the name" },
        { "\"job\":\"j\",\"groups\":[{\"name\":\"a\",\"runtime\":\"cpu\",\"chips\":2,\"speed\":0}]", "speed: a number above 0" },
        { "\"job\":\"j\",\"groups\":[{\"name\":\"a\",\"runtime\":\"cpu\",\"chips\":2,\"speed\":1e19}]", "speed: a number above 0" },
        { "\"job\":\"j\",\"groups\":[{\"name\":\"a\",\"runtime\":\"cpu\",\"chips\":2,\"chip_speeds\":[1]}]", "chip_speeds: a number above 0 is needed for each chip" },
        { "\"job\":\"j\",\"groups\":[{\"name\":\"a\",\"runtime\":\"cpu\",\"chips\":2,\"chip_speeds\":[1,0]}]", "chip_speeds: a number above 0" },
        { "\"job\":\"j\",\"groups\":[{\"name\":\"a\",\"runtime\":\"cpu\",\"chips\":2,\"chip_speeds\":[1e19,1]}]", "chip_speeds: a number above 0" },
        { "\"job\":\"j\",\"groups\":[{\"name\":\"a\",\"runtime\":\"cpu\",\"chips\":2,\"stages\":[{\"first\":0,\"last\":0},{\"first\":0,\"last\":4000000}]}]", "stages[1]: first and last" },
        { "\"job\":\"j\",\"groups\":[{\"name\":\"a\",\"runtime\":\"cpu\",\"chips\":1},{\"name\":\"a\",\"runtime\":\"cpu\",\"chips\":1}]", "'a' is there twice" },
        { "\"job\":\"j\",\"groups\":[{\"name\":\"a\",\"runtime\":\"cpu\",\"chips\":1,\"batch\":8},{\"name\":\"b\",\"runtime\":\"cpu\",\"chips\":1}]", "given for 1 of 2 workers" },
        { "\"job\":\"j\",\"restart\":{\"max\":5000},\"groups\":[{\"name\":\"a\",\"runtime\":\"cpu\",\"chips\":2}]", "restart: max" },
};
/* clang-format on */

static void a_bad_plan_is_refused(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(plans); i++) {
                char text[1024];
                Subtask__Plan *plan;
                struct pb_arena arena;
                struct err err = { 0 };
                json_t *value;

                snprintf(text, sizeof(text), "{\"global_batch\":8%s%s}",
                         plans[i].fields[0] == '\0' ? "" : ",", plans[i].fields);
                value = json_loads(text, 0, NULL);
                assert_non_null(value);
                pb_arena_init(&arena, SUBTASK_ARENA_BYTES);
                if (subtask_read(value, &arena, &plan, &err) != -EINVAL ||
                    strstr(err.msg, plans[i].says) == NULL)
                        fail_msg("%s: want '%s', got '%s'", text, plans[i].says, err.msg);
                pb_arena_free(&arena);
                json_decref(value);
        }
}

/* One more than there may be of anything. */
static void a_plan_has_its_limits(void **state)
{
        static const struct {
                int groups, chips, checkpoint;
                const char *says;
        } rows[] = {
                { SUBTASK_GROUPS_MAX + 1, 1, 9, "groups: a list of 1 to 256" },
                { 17, MESSAGE_CHIPS_MAX, 9, "69632 chips in all" },
                { 1, 1, 1024, "checkpoint: a folder's path" },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                json_t *groups = json_array(), *value;
                char path[2048] = "/", name[16];
                Subtask__Plan *plan;
                struct pb_arena arena;
                struct err err = { 0 };

                memset(path, 'x', (size_t) rows[i].checkpoint);
                path[rows[i].checkpoint] = '\0';
                for (int k = 0; k < rows[i].groups; k++) {
                        snprintf(name, sizeof(name), "g%d", k);
                        json_array_append_new(groups, json_pack("{s:s, s:s, s:i}", "name", name, "runtime",
                                                                "cpu", "chips", rows[i].chips));
                }
                value = json_pack("{s:s, s:i, s:s, s:o}", "job", "j", "global_batch", 8, "checkpoint", path,
                                  "groups", groups);
                pb_arena_init(&arena, SUBTASK_ARENA_BYTES);
                if (subtask_read(value, &arena, &plan, &err) != -EINVAL ||
                    strstr(err.msg, rows[i].says) == NULL)
                        fail_msg("want '%s', got '%s'", rows[i].says, err.msg);
                pb_arena_free(&arena);
                json_decref(value);
        }
}

static Subtask__Plan *sent; /* by a manager that is wrong */

static void another_version(void)
{
        sent->version = 2;
}

static void larger_than_the_whole(void)
{
        sent->groups[0]->batch = 101;
}

static void a_shard_that_ends_first(void)
{
        sent->groups[0]->begin = sent->groups[0]->end + 1;
}

static void a_place_of_another(void)
{
        sent->groups[1]->first_rank = 1;
}

static void no_port(void)
{
        sent->groups[1]->port = 0;
}

static void no_part(void)
{
        sent->groups[0]->used = false;
        sent->groups[1]->first_rank = 0;
}

static void no_groups(void)
{
        sent->n_groups = 0;
}

static void no_job(void)
{
        sent->job = (char *) "";
}

/* clang-format off */
static const struct { void (*spoil)(void); const char *says; } subtasks[] = {
        { another_version,         "the manager speaks version 2" },
        { larger_than_the_whole,   "larger than the whole" },
        { a_shard_that_ends_first, "larger than the whole" },
        { a_place_of_another,      "first_rank of b is another group's" },
        { no_port,                 "address and port of b" },
        { no_part,                 "a has no part" },
        { no_groups,               "groups: a list" },
        { no_job,                  "job: 1 to 63" },
};
/* clang-format on */

static void a_bad_subtask_is_refused(void **state)
{
        struct subtask_ranks ranks;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(subtask_ranks(NULL, "a", &host, &ranks, &err), -EINVAL);
        assert_non_null(strstr(err.msg, "the manager speaks version 0"));
        for (size_t i = 0; i < ARRAY_SIZE(subtasks); i++) {
                struct world w;

                open_plan(&w, plan_text);
                sent = w.plan;
                subtasks[i].spoil();
                if (tell(&w, "a", &ranks, &err) != -EINVAL || strstr(err.msg, subtasks[i].says) == NULL)
                        fail_msg("want '%s', got '%s'", subtasks[i].says, err.msg);
                close_plan(&w);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_order_survives_the_wire),
                cmocka_unit_test(what_cannot_be_is_refused),
                cmocka_unit_test(a_proof_is_good_once_for_one_role_on_one_channel),
                cmocka_unit_test(the_work_is_cut_at_two_levels),
                cmocka_unit_test(who_is_left_has_all_of_the_work),
                cmocka_unit_test(equal_shares_stay_equal),
                cmocka_unit_test(batches_that_are_given_stand),
                cmocka_unit_test(learned_shares_stand_and_learned_lines_cut),
                cmocka_unit_test(a_split_keeps_its_stages),
                cmocka_unit_test(a_bad_subtask_is_refused),
                cmocka_unit_test(a_bad_plan_is_refused),
                cmocka_unit_test(a_plan_has_its_limits),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
