/* The manager of a running world is asked how it is, over TLS and with a proof of the job's own token: what
 * it says is the job's, and nothing is that somebody else says, that is no answer, or that comes too late. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "io/grpc/grpc_server.h"
#include "io/tls/tls.h"
#include "io/tls/tls_keys.h"
#include "job/controller/job_pods.h"
#include "job/launcher/trust/proof.h"
#include "tests/support/controller_bed.h"

static const struct controller_options plain;

/* What a manager does when it is asked. */
struct manners {
        const char *what;
        const char *text;  /* its state; NULL = bytes that are no message */
        const char *nonce; /* of its greeting; NULL = one as it should be */
        enum grpc_status greeting, status;
        void (*meanwhile)(struct record *record); /* while the answer is on its way */
};

struct manager {
        struct bed *b;
        const char *job;
        struct manners manners;
        struct tls *tls;
        struct grpc_server *server;
        char nonce[SHA256_HEX_BYTES];
        unsigned greeted, asked;
};

#define RUNS                                                                                                 \
        "{\"state\":\"Running\",\"epoch\":1,\"step\":9,\"samples\":640,\"epoch_samples\":60000,"             \
        "\"samples_per_s\":320,\"loss\":0.25,\"accuracy\":0.5,\"restarts\":1,\"reshards\":1,"                \
        "\"ranks\":[{\"group\":\"w0-0\",\"batch\":40,\"samples\":400,\"samples_per_s\":200},"                \
        "{\"group\":\"w0-0\",\"batch\":24,\"samples\":240,\"samples_per_s\":120}],"                          \
        "\"events\":[{\"time\":\"2026-11-21T10:00:00.000001Z\",\"reason\":\"Straggler\","                    \
        "\"message\":\"rank 1 is slow\"}]}"
#define BEGINS "{\"state\":\"Running\"}"

static void reply(struct grpc_call *call, const void *message)
{
        size_t size = 0;
        CLEANUP(free_p) uint8_t *bytes = pb_pack(message, &size);

        assert_non_null(bytes);
        grpc_call_reply(call, bytes, size);
}

static void on_greet(void *userdata, struct grpc_call *call, const uint8_t *bytes, size_t size_bytes)
{
        struct manager *m = userdata;
        Rendezvous__Greeting greeting = RENDEZVOUS__GREETING__INIT;

        (void) bytes;
        (void) size_bytes;
        m->greeted++;
        assert_true(proof_nonce(m->nonce));
        greeting.version = MESSAGE_VERSION;
        greeting.nonce = m->manners.nonce != NULL ? (char *) m->manners.nonce : m->nonce;
        if (m->manners.greeting != GRPC_OK)
                grpc_call_finish(call, m->manners.greeting, "not now");
        else
                reply(call, &greeting);
}

/* Only who knows the token that stands in the manager's plan makes this proof. */
static void check_proof(const struct manager *m, const Rendezvous__Proof *proof,
                        const uint8_t binding[TRANSPORT_BINDING_BYTES])
{
        char manager[JOB_POD_NAME_BYTES], wanted[SHA256_HEX_BYTES];
        const struct job_pod *pod;

        job_state_manager_pod_name(m->job, 0, manager);
        pod = record_find_pod(bed_record(m->b, m->job), manager);
        assert_int_equal(strlen(pod->status_token), 48);
        assert_non_null(strstr(bed_text(m->b, "Pod", manager, "metadata|annotations|remuda.dev/plan"),
                               pod->status_token));
        proof_make(pod->status_token, PROOF_STATUS, m->nonce, proof->own, binding, wanted);
        assert_true(proof_matches(wanted, proof->text));
}

static void on_status(void *userdata, struct grpc_call *call, const uint8_t *bytes, size_t size_bytes)
{
        struct manager *m = userdata;
        Rendezvous__State state = RENDEZVOUS__STATE__INIT;
        struct pb_arena arena;
        const Rendezvous__Ask *ask =
                message_read(&arena, &rendezvous__ask__descriptor, bytes, size_bytes, NULL);

        assert_non_null(ask);
        check_proof(m, ask->proof, grpc_call_binding(call));
        pb_arena_free(&arena);
        m->asked++;
        if (m->manners.meanwhile != NULL)
                m->manners.meanwhile(bed_record(m->b, m->job));
        state.json = (char *) m->manners.text;
        if (m->manners.status != GRPC_OK)
                grpc_call_finish(call, m->manners.status, "not you");
        else if (m->manners.text == NULL)
                grpc_call_reply(call, (const uint8_t *) "\xff\xff", 2);
        else
                reply(call, &state);
}

static const char *from_secret(struct bed *b, const char *job, const char *field)
{
        char prefix[100];
        const char *name;
        json_t *object;

        (void) text_format(prefix, sizeof(prefix), "Secret default/%s-", job);
        json_object_foreach(b->store->objects, name, object)
        {
                if (text_starts_with(name, prefix))
                        return json_string_value(
                                json_object_get(json_object_get(object, "stringData"), field));
        }
        fail_msg("'%s' has no Secret", job);
        return NULL;
}

/* @keys: NULL = those that the controller made for this job */
static void open_manager(struct manager *m, const struct tls_keys *keys)
{
        static const struct grpc_method methods[] = { { MESSAGE_GREET, on_greet },
                                                      { MESSAGE_STATUS, on_status },
                                                      { NULL, NULL } };
        struct tls_options tls = { .server = true, .name = JOB_TLS_NAME, .other_name = JOB_TLS_STATUS_NAME };
        struct grpc_server_options server = {
                .address = "127.0.0.1:0", .methods = methods, .userdata = m, .wrap = tls_wrap
        };
        struct err err = { 0 };

        tls.identity.ca.text = keys != NULL ? keys->ca : from_secret(m->b, m->job, "ca.crt");
        tls.identity.certificate.text =
                keys != NULL ? keys->pairs[0].certificate : from_secret(m->b, m->job, "manager.crt");
        tls.identity.key.text = keys != NULL ? keys->pairs[0].key : from_secret(m->b, m->job, "manager.key");
        tls.other.certificate = tls.identity.certificate;
        tls.other.key = tls.identity.key;
        if (tls_new(&tls, &m->tls, &err) < 0)
                fail_msg("%s", err.msg);
        server.wrap_userdata = m->tls;
        if (grpc_server_new(m->b->loop, &server, &m->server, &err) < 0)
                fail_msg("%s", err.msg);
}

static void close_manager(struct manager *m)
{
        grpc_server_free(m->server);
        tls_free(m->tls);
}

/* A job that runs, with a manager that is on this machine. */
static struct manager begin(struct bed *b, const char *job, const char *text)
{
        struct manager m = { .b = b, .job = job, .manners.text = text };
        char group[80], manager[80];

        (void) text_format(group, sizeof(group), "%s-w0-0", job);
        (void) text_format(manager, sizeof(manager), "%s-m0", job);
        bed_put_job(b, job, BED_TWO_CHIPS ",\"epochs\":2,\"data\":{\"path\":\"/d\"},\"restart\":{\"max\":5}");
        BED_WAIT(b, bed_is_there(b, manager) && bed_is_there(b, group));
        return m;
}

static void meet(struct manager *m)
{
        char group[80], manager[80];
        struct record *record = bed_record(m->b, m->job);

        (void) text_format(group, sizeof(group), "%s-w0-0", m->job);
        (void) text_format(manager, sizeof(manager), "%s-m0", m->job);
        (void) text_copy(record->state.address, sizeof(record->state.address),
                         grpc_server_address(m->server));
        bed_merge(m->b, "Pod", group, BED_RUNS);
        bed_merge(m->b, "Pod", manager, BED_RUNS);
        BED_WAIT(m->b, bed_is(m->b, m->job, "Running", NULL));
}

/* Once more, as after a while, until it has answered or there will be no answer. */
static void ask(struct bed *b, const char *job)
{
        struct record *record = bed_record(b, job);

        BED_WAIT(b, !record->asking.under_way);
        record->asking.asked_usec = 0;
        bed_look(b, job);
        BED_WAIT(b, record->asking.asked_usec != 0 && !record->asking.under_way);
        bed_settle(b);
}

static void what_the_manager_says_is_the_jobs(void **state)
{
        struct bed *b = bed_begin(plain);
        struct manager m = begin(b, "j", BEGINS);
        const struct job_state *s;
        unsigned puts;

        (void) state;
        open_manager(&m, NULL);
        meet(&m);
        ask(b, "j");
        s = &bed_record(b, "j")->state;
        assert_true(m.asked > 0);
        assert_true(s->progress.time_usec == 0 && s->point_count == 0); /* it has not begun */
        m.manners.text = RUNS;
        ask(b, "j");
        assert_int_equal(s->progress.samples, 640);
        assert_int_equal(s->progress.samples_total, 120000);
        assert_true(s->progress.loss == 0.25 && s->progress.accuracy == 0.5 && s->progress.epoch == 1);
        assert_true(fabs(s->progress.seconds_left - 119360.0 / 320) < 1e-9);
        assert_true(s->restarts == 1 && s->reshards == 1 && s->point_count > 0);
        assert_int_equal(b->controller->metrics.restarts, 1);
        assert_int_equal(job_state_rank_batch(s, &s->groups[0], 0), 40);
        assert_int_equal(job_state_rank_batch(s, &s->groups[0], 1), 24);
        assert_true(s->groups[0].samples_per_s == 320);
        assert_int_equal(memory_store_count(b->store, "event Straggler"), 1);
        puts = memory_store_count(b->store, "put TrainingJob");
        bed_record(b, "j")->asking.written_usec = 0; /* long ago */
        ask(b, "j");
        assert_int_equal(memory_store_count(b->store, "event Straggler"), 1); /* is no news any more */
        assert_int_equal(b->controller->metrics.restarts, 1);
        assert_true(memory_store_count(b->store, "put TrainingJob") > puts);
        m.manners.text = "{\"state\":\"Running\",\"step\":11,\"reshards\":2}"; /* no figure but that */
        ask(b, "j");
        assert_true(s->progress.step == 11 && s->reshards == 2 && s->progress.seconds_left == 0);
        assert_true(s->progress.loss == 0.25 && s->progress.accuracy == 0.5); /* the last that were said */
        bed_record(b, "j")->state.point_count = 40; /* by now it is asked more seldom */
        bed_look(b, "j");
        ask(b, "j");
        bed_merge(b, "Pod", "j-m0", BED_ENDED("Succeeded", "0", "{\\\"state\\\":\\\"Succeeded\\\"}"));
        BED_WAIT(b, bed_is(b, "j", "Succeeded", NULL));
        assert_int_equal(s->progress.samples_total, 120000);
        close_manager(&m);
        bed_end(b);
}

/* The next manager counts anew: what the ranks did before is added. */
static void the_restarts_of_ranks_outlive_their_manager(void **state)
{
        struct bed *b = bed_begin(plain);
        struct manager m = begin(b, "j", RUNS);
        const struct job_state *s;

        (void) state;
        open_manager(&m, NULL);
        meet(&m);
        ask(b, "j");
        s = &bed_record(b, "j")->state;
        assert_int_equal(s->rank_count, 2);
        bed_drop(b, "Pod", "j-m0");
        BED_WAIT(b, bed_is_there(b, "j-m1"));
        assert_int_equal(s->restarts, 2); /* the manager's, and that of the manager */
        assert_int_equal(job_state_rank(s, "w0-0", 0)->before, job_state_rank(s, "w0-0", 0)->restarts);
        assert_int_equal(job_state_rank(s, "w0-0", 0)->restarts, 1);
        close_manager(&m);
        bed_end(b);
}

static const char *told_again(struct bed *b)
{
        const char *times = bed_text(b, "Pod", "j-w0-0", "metadata|annotations|remuda.dev/manager-told");

        return times == NULL ? "" : times;
}

/* A kubelet may miss that a volume is to be written anew, and looks at every change of its pod. */
static void a_group_that_has_not_joined_is_told_again(void **state)
{
        struct bed *b = bed_begin(plain);
        struct manager m = begin(b, "j", "{\"state\":\"Waiting\"}");
        struct job_pod *group;

        (void) state;
        open_manager(&m, NULL);
        meet(&m);
        ask(b, "j");
        group = record_find_pod(bed_record(b, "j"), "j-w0-0");
        assert_true(bed_record(b, "j")->asking.waits && group->told_usec > 0);
        assert_string_equal(told_again(b), ""); /* it may just be on its way */
        for (unsigned i = 0; i < 5; i++) {
                group->told_usec -= (UINT64_C(5000000) << i) - 4000000;
                ask(b, "j");
                assert_int_equal(atoi(told_again(b)), i); /* not before */
                group->told_usec -= 4000000;
                ask(b, "j");
                bed_settle(b);
                assert_int_equal(atoi(told_again(b)), i < 4 ? i + 1 : 4); /* not for ever */
        }
        m.manners.text = BEGINS; /* all have joined */
        ask(b, "j");
        group->told_times = 0;
        ask(b, "j");
        assert_true(!bed_record(b, "j")->asking.waits && group->told_times == 0);
        close_manager(&m);
        bed_end(b);
}

/* Where a pod is not said to be, nobody is asked. */
static void an_address_may_be_missing(void **state)
{
        static const char runs[] = "{\"spec\":{\"nodeName\":\"a\"},\"status\":{\"phase\":\"Running\","
                                   "\"containerStatuses\":[{\"name\":\"main\",\"state\":{\"running\":{}}}]}}";
        struct bed *b = bed_begin(plain);

        (void) state;
        (void) begin(b, "j", BEGINS);
        bed_merge(b, "Pod", "j-w0-0", runs);
        bed_merge(b, "Pod", "j-m0", runs);
        BED_WAIT(b, bed_is(b, "j", "Running", NULL));
        bed_look(b, "j");
        assert_string_equal(bed_record(b, "j")->state.address, "");
        assert_null(bed_record(b, "j")->asking.client);
        bed_end(b);
}

#define HEX16 "0123456789abcdef"
/* clang-format off */
static const struct manners no_answers[] = {
        { .what = "no text",                     .text = "last words of some program" },
        { .what = "no state in it",              .text = "{\"samples\":640}" },
        { .what = "no message" },
        { .what = "it refuses the proof",        .text = RUNS, .status = GRPC_UNAUTHENTICATED },
        { .what = "it does not greet",           .text = RUNS, .greeting = GRPC_UNAVAILABLE },
        { .what = "a short greeting",            .text = RUNS, .nonce = "0123" },
        { .what = "a greeting of other letters", .text = RUNS, .nonce = HEX16 HEX16 HEX16 "0123456789abcdeg" },
};
/* clang-format on */

static void what_is_no_answer_changes_nothing(void **state)
{
        struct bed *b = bed_begin(plain);
        struct manager m = begin(b, "j", BEGINS);
        struct record *record = bed_record(b, "j");

        (void) state;
        open_manager(&m, NULL);
        m.manners.greeting = GRPC_UNAVAILABLE;
        meet(&m);
        for (size_t i = 0; i < ARRAY_SIZE(no_answers); i++) {
                m.manners = no_answers[i];
                ask(b, "j");
                if (record->asking.last_seen_usec != 0 || record->state.progress.time_usec != 0 ||
                    !bed_is(b, "j", "Running", NULL))
                        fail_msg("%s was taken", no_answers[i].what);
        }
        m.manners = (struct manners){ .text = RUNS };
        ask(b, "j"); /* and is asked again */
        assert_int_equal(record->state.progress.samples, 640);
        close_manager(&m);
        bed_end(b);
}

static void delete_job(struct record *record)
{
        bed_merge(record->controller->options.userdata, "TrainingJob", record->name,
                  "{\"metadata\":{\"deletionTimestamp\":\"2026-11-21T10:10:00Z\"}}");
        record->deleting = true;
}

static void end_job(struct record *record)
{
        record->state.phase = JOB_FAILED;
}

static void move_manager(struct record *record)
{
        (void) text_copy(record->state.address, sizeof(record->state.address), "127.0.0.1:1");
}

static void an_answer_may_come_too_late(void **state)
{
        static const struct manners rows[] = {
                { .what = "the job is deleted", .text = RUNS, .meanwhile = delete_job },
                { .what = "it has ended", .text = RUNS, .meanwhile = end_job },
                { .what = "another is asked by now", .text = RUNS, .meanwhile = move_manager },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct bed *b = bed_begin(plain);
                struct manager m = begin(b, "j", BEGINS);
                struct record *record = bed_record(b, "j");

                open_manager(&m, NULL);
                m.manners = rows[i];
                meet(&m);
                BED_WAIT(b, m.asked > 0 && !record->asking.under_way);
                bed_settle(b);
                if (record->state.progress.time_usec != 0 || record->state.restarts != 0)
                        fail_msg("%s: it was taken", rows[i].what);
                close_manager(&m);
                bed_end(b);
        }
}

/* Who has another CA's certificate is not the manager; without the job's own CA nobody is. */
static void only_the_jobs_own_manager_is_asked(void **state)
{
        static const struct tls_keys_purpose purposes[TLS_KEYS_PAIRS] = {
                { { JOB_TLS_NAME, JOB_TLS_STATUS_NAME }, true, true }, { { JOB_TLS_GROUP_NAME }, false, true }
        };
        static const char *const no_ca[] = { "", ",\"ca\":\"x\"" };
        struct bed *b = bed_begin(plain);
        struct manager other = begin(b, "j", RUNS), m = begin(b, "j", RUNS);
        struct record *record = bed_record(b, "j");
        struct tls_keys keys;
        struct err err = { 0 };
        CLEANUP(free_p) char *own = strdup(record->keys);

        (void) state;
        assert_int_equal(tls_keys_make(purposes, TLS_KEYS_ALWAYS, &keys, &err), 0);
        open_manager(&other, &keys);
        open_manager(&m, NULL);
        meet(&other);
        ask(b, "j");
        assert_true(other.greeted == 0 && record->asking.last_seen_usec == 0);
        (void) text_copy(record->state.address, sizeof(record->state.address), grpc_server_address(m.server));
        for (size_t i = 0; i < ARRAY_SIZE(no_ca); i++) {
                struct text keys_text = { 0 };

                text_printf(&keys_text, "{\"secret\":\"%s\"%s}", record_find_pod(record, "j-m0")->secret,
                            no_ca[i]);
                record_set_keys(record, keys_text.data);
                record->asking.asked_usec = 0;
                bed_look(b, "j");
                assert_null(record->asking.client);
                assert_int_equal(record->asking.asked_usec, 0);
        }
        record_set_keys(record, NULL);
        bed_look(b, "j");
        assert_null(record->asking.client);
        record_set_keys(record, TAKE(own));
        ask(b, "j");
        assert_int_equal(record->state.progress.samples, 640);
        bed_merge(b, "Pod", "j-m0", "{\"status\":{\"phase\":\"Unknown\"}}"); /* its node is silent */
        BED_WAIT(b, record->asking.client == NULL);
        bed_merge(b, "Pod", "j-m0",
                  "{\"status\":{\"phase\":\"Running\"},\"metadata\":{\"annotations\":{\"remuda.dev/"
                  "plan\":\"{}\"}}}");
        bed_settle(b);
        bed_look(b, "j"); /* whoever has no token for it is not asked, either */
        assert_null(record->asking.client);
        tls_keys_free(&keys);
        close_manager(&m);
        close_manager(&other);
        bed_end(b);
}

#define LEARNS                                                                                               \
        "{\"state\":\"Running\",\"ranks\":[{\"group\":\"w0-0\",\"batch\":32,\"samples\":5000,"               \
        "\"samples_per_s\":200},{\"group\":\"w0-0\",\"batch\":32,\"samples\":5000,\"samples_per_s\":190}]}"

static unsigned times_said(const struct bed *b, const char *words)
{
        unsigned count = 0;

        for (const char *at = b->said.data; (at = strstr(at, words)) != NULL; at++)
                count++;
        return count;
}

static void learn_again(struct bed *b, const char *job)
{
        bed_record(b, job)->asking.learnt_usec = b->controller->learnt_usec = 0; /* long ago */
        ask(b, job);
}

static void stop_leading(struct record *record)
{
        ((struct bed *) record->controller->options.userdata)->leads = false;
}

/* A table that cannot be written is said once, until it can be; no job is the worse for it. */
static void speeds_are_learnt_where_that_can_be(void **state)
{
        static const struct {
                int result;
                unsigned said;
                bool delete; /* is that the remedy? */
        } rows[] = {
                { -EBADMSG, 1, true }, { -EBADMSG, 1, true }, { -ECANCELED, 1, true }, { 0, 1, true },
                { -EIO, 2, false },    { -EIO, 2, false },    { 0, 2, false },         { -EINVAL, 3, true },
        };
        struct bed *b = bed_begin(plain);
        struct manager m = begin(b, "j", BEGINS);

        (void) state;
        open_manager(&m, NULL);
        meet(&m);
        ask(b, "j");
        assert_int_equal(memory_store_count(b->store, "change SpeedTable"), 0); /* it says none */
        m.manners.text = LEARNS;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                const char *last = NULL;

                memory_store_refuse(b->store, rows[i].result == 0 ? NULL : "change SpeedTable",
                                    rows[i].result, "no such luck");
                learn_again(b, "j");
                assert_int_equal(memory_store_count(b->store, "change SpeedTable"), i + 1);
                assert_int_equal(times_said(b, "speed-table"), rows[i].said);
                for (const char *at = b->said.data; (at = strstr(at, "speed-table")) != NULL; at++)
                        last = at;
                assert_int_equal(strstr(last, "or delete it") != NULL, rows[i].delete);
        }
        m.manners.meanwhile = stop_leading; /* another one learns now */
        learn_again(b, "j");
        b->leads = true;
        assert_int_equal(memory_store_count(b->store, "change SpeedTable"), ARRAY_SIZE(rows));
        m.manners.meanwhile = NULL;
        b->controller->learnt_usec = bed_record(b, "j")->asking.learnt_usec =
                controller_monotonic(b->controller);
        ask(b, "j"); /* too soon for more */
        assert_int_equal(memory_store_count(b->store, "change SpeedTable"), ARRAY_SIZE(rows));
        close_manager(&m);
        bed_end(b);
}

static void hear_of_k(struct record *record)
{
        struct record *k = controller_find(record->controller, "default/k");

        k->asking.last_seen_usec = controller_monotonic(record->controller);
}

/* Who learnt longest ago comes first, if it is still heard of. */
static void jobs_take_turns_to_be_learnt_from(void **state)
{
        struct bed *b = bed_begin(plain);
        struct manager j = begin(b, "j", LEARNS), k = begin(b, "k", LEARNS);
        struct record_asking *first = &bed_record(b, "j")->asking, *second = &bed_record(b, "k")->asking;
        unsigned tries = 0;
        uint64_t now;

        (void) state;
        open_manager(&j, NULL);
        open_manager(&k, NULL);
        meet(&j);
        meet(&k);
        ask(b, "j");
        ask(b, "k");
        k.manners.greeting = GRPC_UNAVAILABLE; /* its last word is its last */
        j.manners.meanwhile = hear_of_k;
        do { /* the answer may be slow, and k silent by then */
                now = controller_monotonic(b->controller);
                first->learnt_usec = now - 40000000;
                second->learnt_usec = now - 50000000;
                b->controller->learnt_usec = 0;
                ask(b, "j");
        } while (first->learnt_usec != now - 40000000 && ++tries < 10);
        assert_int_equal(first->learnt_usec, now - 40000000); /* it is k's turn */
        j.manners.meanwhile = NULL;
        second->last_seen_usec = 1; /* which has fallen silent */
        ask(b, "j");
        assert_true(first->learnt_usec >= now);
        close_manager(&j);
        close_manager(&k);
        bed_end(b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_the_manager_says_is_the_jobs),
                cmocka_unit_test(the_restarts_of_ranks_outlive_their_manager),
                cmocka_unit_test(a_group_that_has_not_joined_is_told_again),
                cmocka_unit_test(an_address_may_be_missing),
                cmocka_unit_test(what_is_no_answer_changes_nothing),
                cmocka_unit_test(an_answer_may_come_too_late),
                cmocka_unit_test(only_the_jobs_own_manager_is_asked),
                cmocka_unit_test(speeds_are_learnt_where_that_can_be),
                cmocka_unit_test(jobs_take_turns_to_be_learnt_from),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
