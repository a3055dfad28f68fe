#include "job/launcher/rendezvous_pb.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/pb_arena.h"
#include "base/text.h"
#include "job/launcher/rendezvous.pb-c.h"
#include "job/spec/job.h"

#define ARENA_BYTES ((size_t) 4 << 20)

/* --- encoding
 * ------------------------------------------------------------------------------------------------------ */

uint8_t *rendezvous_join_encode(const struct rendezvous_join *join, size_t *ret_bytes)
{
        Remuda__Rendezvous__V1__Join message = REMUDA__RENDEZVOUS__V1__JOIN__INIT;

        message.version = join->version;
        message.token = (char *) join->token;
        message.group = (char *) join->group;
        message.runtime = (char *) join->runtime;
        message.chips = join->chips;
        message.address = (char *) join->address;
        message.port = join->port;
        message.program_sha256 = (char *) join->program_sha256;
        return pb_pack(&message, ret_bytes);
}

uint8_t *rendezvous_order_encode(const struct rendezvous_order *order, size_t *ret_bytes)
{
        Remuda__Rendezvous__V1__Order message = REMUDA__RENDEZVOUS__V1__ORDER__INIT;
        Subtask__Plan told;

        message.id = order->id;
        message.kind = (uint32_t) order->kind;
        if (order->plan != NULL) {
                told = *order->plan;
                told.n_args = told.n_resume_args = 0;
                told.status_token = NULL;
                message.plan = &told;
        }
        message.argv = order->argv;
        message.n_argv = order->argc;
        message.exit_code = order->exit_code;
        return pb_pack(&message, ret_bytes);
}

uint8_t *rendezvous_answer_encode(const struct rendezvous_answer *answer, size_t *ret_bytes)
{
        Remuda__Rendezvous__V1__Answer message = REMUDA__RENDEZVOUS__V1__ANSWER__INIT;

        message.token = (char *) answer->token;
        message.group = (char *) answer->group;
        message.id = answer->id;
        message.exit_code = answer->exit_code;
        message.message = (char *) answer->message;
        return pb_pack(&message, ret_bytes);
}

uint8_t *rendezvous_start_encode(const struct rendezvous_start *start, size_t *ret_bytes)
{
        Remuda__Rendezvous__V1__Start message = REMUDA__RENDEZVOUS__V1__START__INIT;

        message.version = start->version;
        message.token = (char *) start->token;
        message.host = (char *) start->host;
        message.argv = start->argv;
        message.n_argv = start->argc;
        return pb_pack(&message, ret_bytes);
}

uint8_t *rendezvous_end_encode(const struct rendezvous_end *end, size_t *ret_bytes)
{
        Remuda__Rendezvous__V1__End message = REMUDA__RENDEZVOUS__V1__END__INIT;

        message.exit_code = end->exit_code;
        message.message = (char *) end->message;
        return pb_pack(&message, ret_bytes);
}

uint8_t *rendezvous_seen_encode(const struct rendezvous_seen *seen, size_t *ret_bytes)
{
        Remuda__Rendezvous__V1__Seen message = REMUDA__RENDEZVOUS__V1__SEEN__INIT;
        Remuda__Rendezvous__V1__RankSeen *rows = calloc(seen->rank_count + 1, sizeof(*rows));
        Remuda__Rendezvous__V1__RankSeen **list = calloc(seen->rank_count + 1, sizeof(*list));
        uint8_t *bytes = NULL;

        for (size_t i = 0; rows != NULL && list != NULL && i < seen->rank_count; i++) {
                const struct rendezvous_rank *rank = &seen->ranks[i];

                remuda__rendezvous__v1__rank_seen__init(&rows[i]);
                rows[i].rank = rank->rank;
                rows[i].lines = rank->lines;
                rows[i].epoch = rank->epoch;
                rows[i].step = rank->step;
                rows[i].samples = rank->samples;
                rows[i].loss = rank->loss;
                rows[i].samples_per_s = rank->samples_per_s;
                rows[i].busy_seconds = rank->busy_seconds;
                rows[i].accuracy = rank->accuracy;
                rows[i].has_accuracy = rank->has_accuracy;
                rows[i].epoch_samples = rank->epoch_samples;
                rows[i].pid = rank->pid;
                rows[i].stopped = rank->stopped;
                rows[i].ended = rank->ended;
                rows[i].exit_code = rank->exit_code;
                rows[i].ended_usec = rank->ended_usec;
                list[i] = &rows[i];
        }
        message.token = (char *) seen->token;
        message.group = (char *) seen->group;
        message.world = seen->world;
        message.leaving = seen->leaving;
        message.ranks = list;
        message.n_ranks = seen->rank_count;
        if (rows != NULL && list != NULL)
                bytes = pb_pack(&message, ret_bytes);
        free(list);
        free(rows);
        return bytes;
}

uint8_t *rendezvous_ask_encode(const struct rendezvous_ask *ask, size_t *ret_bytes)
{
        Remuda__Rendezvous__V1__Ask message = REMUDA__RENDEZVOUS__V1__ASK__INIT;

        message.version = ask->version;
        message.token = (char *) ask->token;
        return pb_pack(&message, ret_bytes);
}

uint8_t *rendezvous_state_encode(const char *json, size_t *ret_bytes)
{
        Remuda__Rendezvous__V1__State message = REMUDA__RENDEZVOUS__V1__STATE__INIT;

        message.json = (char *) json;
        return pb_pack(&message, ret_bytes);
}

/* --- decoding
 * ------------------------------------------------------------------------------------------------------ */

static void *unpack(struct pb_arena *arena, const ProtobufCMessageDescriptor *descriptor,
                    const uint8_t *bytes, size_t size_bytes, struct err *err)
{
        void *message = NULL;

        pb_arena_init(arena, ARENA_BYTES);
        if (size_bytes <= RENDEZVOUS_MAX_BYTES)
                message = pb_unpack(arena, descriptor, bytes, size_bytes);
        if (message == NULL) {
                (void) err_set(err, -EBADMSG, "not a rendezvous message, or a larger one than any may be");
                pb_arena_free(arena);
        }
        return message;
}

static int field(char *into, size_t into_bytes, const char *value, const char *name, struct err *err)
{
        if (!text_copy(into, into_bytes, value))
                return err_set(err, -EBADMSG, "%s: longer than %zu bytes", name, into_bytes - 1);
        return 0;
}

static int label(char *into, size_t into_bytes, const char *value, const char *name, struct err *err)
{
        if (!job_name_valid(value))
                return err_set(err, -EBADMSG, "%s: '%.80s' is not 1 to 63 small letters, digits and '-'",
                               name, value);
        return field(into, into_bytes, value, name, err);
}

/* The list that was decoded, with a NULL behind it. */
static int take_argv(struct pb_arena *arena, char **argv, size_t argc, char ***ret, struct err *err)
{
        if (argc > RENDEZVOUS_ARGS_MAX)
                return err_set(err, -EBADMSG, "argv: %zu words; at most %d are allowed", argc,
                               RENDEZVOUS_ARGS_MAX);
        for (size_t i = 0; i < argc; i++)
                if (strlen(argv[i]) > RENDEZVOUS_ARG_MAX_BYTES)
                        return err_set(err, -EBADMSG, "argv[%zu]: longer than %d bytes", i,
                                       RENDEZVOUS_ARG_MAX_BYTES);
        *ret = pb_arena_take(arena, (argc + 1) * sizeof(*argv));
        if (*ret == NULL)
                return err_set(err, -ENOMEM, "no memory for the message");
        if (argc > 0)
                memcpy(*ret, argv, argc * sizeof(*argv));
        return 0;
}

int rendezvous_join_decode(const uint8_t *bytes, size_t size_bytes, struct rendezvous_join *ret,
                           struct err *err)
{
        struct pb_arena arena;
        Remuda__Rendezvous__V1__Join *message;
        int r;

        *ret = (struct rendezvous_join){ 0 };
        message = unpack(&arena, &remuda__rendezvous__v1__join__descriptor, bytes, size_bytes, err);
        if (message == NULL)
                return -EBADMSG;
        ret->version = message->version;
        ret->chips = message->chips;
        r = field(ret->token, sizeof(ret->token), message->token, "token", err);
        if (r == 0)
                r = label(ret->group, sizeof(ret->group), message->group, "group", err);
        if (r == 0)
                r = field(ret->runtime, sizeof(ret->runtime), message->runtime, "runtime", err);
        if (r == 0)
                r = field(ret->address, sizeof(ret->address), message->address, "address", err);
        if (r == 0)
                r = field(ret->program_sha256, sizeof(ret->program_sha256), message->program_sha256,
                          "program_sha256", err);
        if (r == 0 && ret->program_sha256[0] != '\0' && !sha256_is_hex(ret->program_sha256))
                r = err_set(err, -EBADMSG, "program_sha256: not 64 hexadecimal digits");
        ret->port = message->port;
        if (r == 0 && ret->port > 65535)
                r = err_set(err, -EBADMSG, "port: %u is not in 0..65535", ret->port);
        if (r == 0 && (ret->chips < 1 || ret->chips > RENDEZVOUS_CHIPS_MAX))
                r = err_set(err, -EBADMSG, "chips: %u is not in 1..%d", ret->chips, RENDEZVOUS_CHIPS_MAX);
        pb_arena_free(&arena);
        return r;
}

int rendezvous_order_decode(const uint8_t *bytes, size_t size_bytes, struct rendezvous_order *ret,
                            struct err *err)
{
        Remuda__Rendezvous__V1__Order *message;
        int r = 0;

        *ret = (struct rendezvous_order){ 0 };
        message = unpack(&ret->arena, &remuda__rendezvous__v1__order__descriptor, bytes, size_bytes, err);
        if (message == NULL)
                return -EBADMSG;
        ret->id = message->id;
        ret->exit_code = message->exit_code;
        ret->plan = message->plan;
        ret->argc = message->n_argv;
        if (message->kind < ORDER_SUBTASK || message->kind > ORDER_TERMINATE)
                r = err_set(err, -EBADMSG, "kind: %u is no order that is known here", message->kind);
        ret->kind = (enum rendezvous_order_kind) message->kind;
        if (r == 0 && message->n_argv > 0)
                r = take_argv(&ret->arena, message->argv, message->n_argv, &ret->argv, err);
        if (r < 0)
                rendezvous_order_free(ret);
        return r;
}

int rendezvous_answer_decode(const uint8_t *bytes, size_t size_bytes, struct rendezvous_answer *ret,
                             struct err *err)
{
        struct pb_arena arena;
        Remuda__Rendezvous__V1__Answer *message;
        int r;

        *ret = (struct rendezvous_answer){ 0 };
        message = unpack(&arena, &remuda__rendezvous__v1__answer__descriptor, bytes, size_bytes, err);
        if (message == NULL)
                return -EBADMSG;
        ret->id = message->id;
        ret->exit_code = message->exit_code;
        r = field(ret->token, sizeof(ret->token), message->token, "token", err);
        if (r == 0)
                r = label(ret->group, sizeof(ret->group), message->group, "group", err);
        (void) text_copy(ret->message, sizeof(ret->message), message->message);
        pb_arena_free(&arena);
        return r;
}

int rendezvous_start_decode(const uint8_t *bytes, size_t size_bytes, struct rendezvous_start *ret,
                            struct err *err)
{
        Remuda__Rendezvous__V1__Start *message;
        int r;

        *ret = (struct rendezvous_start){ 0 };
        message = unpack(&ret->arena, &remuda__rendezvous__v1__start__descriptor, bytes, size_bytes, err);
        if (message == NULL)
                return -EBADMSG;
        ret->version = message->version;
        ret->argc = message->n_argv;
        r = field(ret->token, sizeof(ret->token), message->token, "token", err);
        if (r == 0)
                r = label(ret->host, sizeof(ret->host), message->host, "host", err);
        if (r == 0)
                r = take_argv(&ret->arena, message->argv, message->n_argv, &ret->argv, err);
        if (r < 0)
                rendezvous_start_free(ret);
        return r;
}

int rendezvous_end_decode(const uint8_t *bytes, size_t size_bytes, struct rendezvous_end *ret,
                          struct err *err)
{
        struct pb_arena arena;
        Remuda__Rendezvous__V1__End *message;

        *ret = (struct rendezvous_end){ 0 };
        message = unpack(&arena, &remuda__rendezvous__v1__end__descriptor, bytes, size_bytes, err);
        if (message == NULL)
                return -EBADMSG;
        ret->exit_code = message->exit_code;
        (void) text_copy(ret->message, sizeof(ret->message), message->message);
        pb_arena_free(&arena);
        return 0;
}

int rendezvous_seen_decode(const uint8_t *bytes, size_t size_bytes, struct rendezvous_seen *ret,
                           struct err *err)
{
        struct pb_arena arena;
        Remuda__Rendezvous__V1__Seen *message;
        int r;

        *ret = (struct rendezvous_seen){ 0 };
        message = unpack(&arena, &remuda__rendezvous__v1__seen__descriptor, bytes, size_bytes, err);
        if (message == NULL)
                return -EBADMSG;
        ret->world = message->world;
        ret->leaving = message->leaving;
        r = field(ret->token, sizeof(ret->token), message->token, "token", err);
        if (r == 0)
                r = label(ret->group, sizeof(ret->group), message->group, "group", err);
        if (r == 0 && message->n_ranks > RENDEZVOUS_CHIPS_MAX)
                r = err_set(err, -EBADMSG, "ranks: %zu; at most %d are allowed", message->n_ranks,
                            RENDEZVOUS_CHIPS_MAX);
        if (r == 0) {
                ret->ranks = calloc(message->n_ranks + 1, sizeof(*ret->ranks));
                r = ret->ranks == NULL ? err_set(err, -ENOMEM, "no memory for the message") : 0;
        }
        for (size_t i = 0; r == 0 && i < message->n_ranks; i++) {
                const Remuda__Rendezvous__V1__RankSeen *row = message->ranks[i];

                ret->ranks[i] = (struct rendezvous_rank){ .rank = row->rank,
                                                          .lines = row->lines,
                                                          .epoch = row->epoch,
                                                          .step = row->step,
                                                          .samples = row->samples,
                                                          .loss = row->loss,
                                                          .samples_per_s = row->samples_per_s,
                                                          .busy_seconds = row->busy_seconds,
                                                          .accuracy = row->accuracy,
                                                          .has_accuracy = row->has_accuracy,
                                                          .epoch_samples = row->epoch_samples,
                                                          .pid = row->pid,
                                                          .stopped = row->stopped,
                                                          .ended = row->ended,
                                                          .exit_code = row->exit_code,
                                                          .ended_usec = row->ended_usec };
                ret->rank_count = i + 1;
        }
        pb_arena_free(&arena);
        return r;
}

int rendezvous_ask_decode(const uint8_t *bytes, size_t size_bytes, struct rendezvous_ask *ret,
                          struct err *err)
{
        struct pb_arena arena;
        Remuda__Rendezvous__V1__Ask *message;
        int r;

        *ret = (struct rendezvous_ask){ 0 };
        message = unpack(&arena, &remuda__rendezvous__v1__ask__descriptor, bytes, size_bytes, err);
        if (message == NULL)
                return -EBADMSG;
        ret->version = message->version;
        r = field(ret->token, sizeof(ret->token), message->token, "token", err);
        pb_arena_free(&arena);
        return r;
}

int rendezvous_state_decode(const uint8_t *bytes, size_t size_bytes, char **ret, struct err *err)
{
        struct pb_arena arena;
        Remuda__Rendezvous__V1__State *message;

        *ret = NULL;
        message = unpack(&arena, &remuda__rendezvous__v1__state__descriptor, bytes, size_bytes, err);
        if (message == NULL)
                return -EBADMSG;
        *ret = strdup(message->json);
        pb_arena_free(&arena);
        return *ret == NULL ? err_set(err, -ENOMEM, "no memory for the message") : 0;
}

void rendezvous_seen_free(struct rendezvous_seen *seen)
{
        free(seen->ranks);
        *seen = (struct rendezvous_seen){ 0 };
}

void rendezvous_order_free(struct rendezvous_order *order)
{
        pb_arena_free(&order->arena);
        *order = (struct rendezvous_order){ 0 };
}

void rendezvous_start_free(struct rendezvous_start *start)
{
        pb_arena_free(&start->arena);
        *start = (struct rendezvous_start){ 0 };
}
