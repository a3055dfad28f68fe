#include "codec/rendezvous_pb.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "codec/pb_arena.h"
#include "core/job.h"
#include "core/text.h"
#include "proto/rendezvous.pb-c.h"

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
        return pb_pack(&message, ret_bytes);
}

uint8_t *rendezvous_order_encode(const struct rendezvous_order *order, size_t *ret_bytes)
{
        Remuda__Rendezvous__V1__Order message = REMUDA__RENDEZVOUS__V1__ORDER__INIT;

        message.id = order->id;
        message.kind = (uint32_t) order->kind;
        message.subtask = order->subtask == NULL ? (char *) "" : order->subtask;
        message.argv = order->argv;
        message.n_argv = order->argc;
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

static int copy_argv(char *const *argv, size_t argc, char ***ret, size_t *ret_argc, struct err *err)
{
        if (argc > RENDEZVOUS_ARGS_MAX)
                return err_set(err, -EBADMSG, "argv: %zu words; at most %d are allowed", argc,
                               RENDEZVOUS_ARGS_MAX);
        *ret = calloc(argc + 1, sizeof(**ret));
        if (*ret == NULL)
                return err_set(err, -ENOMEM, "no memory for the message");
        for (size_t i = 0; i < argc; i++) {
                if (strlen(argv[i]) > RENDEZVOUS_ARG_MAX_BYTES)
                        return err_set(err, -EBADMSG, "argv[%zu]: longer than %d bytes", i,
                                       RENDEZVOUS_ARG_MAX_BYTES);
                (*ret)[i] = strdup(argv[i]);
                if ((*ret)[i] == NULL)
                        return err_set(err, -ENOMEM, "no memory for the message");
                *ret_argc = i + 1;
        }
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
        if (r == 0 && (ret->chips < 1 || ret->chips > RENDEZVOUS_CHIPS_MAX))
                r = err_set(err, -EBADMSG, "chips: %u is not in 1..%d", ret->chips, RENDEZVOUS_CHIPS_MAX);
        pb_arena_free(&arena);
        return r;
}

int rendezvous_order_decode(const uint8_t *bytes, size_t size_bytes, struct rendezvous_order *ret,
                            struct err *err)
{
        struct pb_arena arena;
        Remuda__Rendezvous__V1__Order *message;
        int r = 0;

        *ret = (struct rendezvous_order){ 0 };
        message = unpack(&arena, &remuda__rendezvous__v1__order__descriptor, bytes, size_bytes, err);
        if (message == NULL)
                return -EBADMSG;
        ret->id = message->id;
        if (message->kind < ORDER_SUBTASK || message->kind > ORDER_GO)
                r = err_set(err, -EBADMSG, "kind: %u is no order that is known here", message->kind);
        ret->kind = (enum rendezvous_order_kind) message->kind;
        if (r == 0 && message->subtask[0] != '\0') {
                ret->subtask = strdup(message->subtask);
                r = ret->subtask == NULL ? err_set(err, -ENOMEM, "no memory for the message") : 0;
        }
        if (r == 0 && message->n_argv > 0)
                r = copy_argv(message->argv, message->n_argv, &ret->argv, &ret->argc, err);
        pb_arena_free(&arena);
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
        struct pb_arena arena;
        Remuda__Rendezvous__V1__Start *message;
        int r;

        *ret = (struct rendezvous_start){ 0 };
        message = unpack(&arena, &remuda__rendezvous__v1__start__descriptor, bytes, size_bytes, err);
        if (message == NULL)
                return -EBADMSG;
        ret->version = message->version;
        r = field(ret->token, sizeof(ret->token), message->token, "token", err);
        if (r == 0)
                r = label(ret->host, sizeof(ret->host), message->host, "host", err);
        if (r == 0)
                r = copy_argv(message->argv, message->n_argv, &ret->argv, &ret->argc, err);
        pb_arena_free(&arena);
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

static void free_argv(char ***argv, size_t *argc)
{
        for (size_t i = 0; i < *argc; i++)
                free((*argv)[i]);
        free(*argv);
        *argv = NULL;
        *argc = 0;
}

void rendezvous_order_free(struct rendezvous_order *order)
{
        free_argv(&order->argv, &order->argc);
        free(order->subtask);
        *order = (struct rendezvous_order){ 0 };
}

void rendezvous_start_free(struct rendezvous_start *start)
{
        free_argv(&start->argv, &start->argc);
        *start = (struct rendezvous_start){ 0 };
}
