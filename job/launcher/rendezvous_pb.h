/* Rendezvous messages: what the manager and the groups of a job say to each other, structs <-> protobuf.
 *
 * In memory only. Every field has a maximum; names are checked where they become names of anything. A decoded
 * message owns its strings and is released with its _free(). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/pb_arena.h"
#include "base/sha256.h"
#include "job/plan/subtask.pb-c.h"

#define RENDEZVOUS_VERSION       3
#define RENDEZVOUS_TOKEN_BYTES   129
#define RENDEZVOUS_NAME_BYTES    64
#define RENDEZVOUS_MESSAGE_BYTES 256
#define RENDEZVOUS_ARGS_MAX      512
#define RENDEZVOUS_ARG_MAX_BYTES 65536
#define RENDEZVOUS_MAX_BYTES     ((size_t) 1 << 20)
#define RENDEZVOUS_CHIPS_MAX     4096

#define RENDEZVOUS_JOIN   "/remuda.rendezvous.v1.Rendezvous/Join"
#define RENDEZVOUS_ANSWER "/remuda.rendezvous.v1.Rendezvous/Answer"
#define RENDEZVOUS_START  "/remuda.rendezvous.v1.Rendezvous/Start"
#define RENDEZVOUS_SEEN   "/remuda.rendezvous.v1.Rendezvous/Seen"
#define RENDEZVOUS_STATUS "/remuda.rendezvous.v1.Rendezvous/Status"

enum rendezvous_order_kind {
        ORDER_SUBTASK = 1,
        ORDER_START = 2,     /* mpirun's daemon */
        ORDER_STOP = 3,      /* kill what runs, at once */
        ORDER_GO = 4,        /* the job is over */
        ORDER_TERMINATE = 5, /* SIGTERM for the ranks: a checkpoint may be written */
};

struct rendezvous_join {
        uint32_t version;
        char token[RENDEZVOUS_TOKEN_BYTES];
        char group[RENDEZVOUS_NAME_BYTES]; /* a DNS label */
        char runtime[16];
        uint32_t chips;                        /* 1..RENDEZVOUS_CHIPS_MAX */
        char address[64];                      /* numeric; "" = where the connection comes from */
        uint32_t port;                         /* free there */
        char program_sha256[SHA256_HEX_BYTES]; /* of the program that it starts; "" = not known */
};

struct rendezvous_order {
        uint64_t id;
        enum rendezvous_order_kind kind;
        const Subtask__Plan *plan; /* of ORDER_SUBTASK, which needs no group to know how the others are
                                      started: its arguments and the token for the state stay here */
        char **argv;               /* argc strings and a NULL; NULL = none */
        size_t argc;
        int32_t exit_code;     /* of ORDER_GO: the job's */
        struct pb_arena arena; /* of a decoded one: it holds the plan and the strings */
};

struct rendezvous_answer {
        char token[RENDEZVOUS_TOKEN_BYTES];
        char group[RENDEZVOUS_NAME_BYTES];
        uint64_t id;
        int32_t exit_code;
        char message[RENDEZVOUS_MESSAGE_BYTES];
};

struct rendezvous_start {
        uint32_t version;
        char token[RENDEZVOUS_TOKEN_BYTES];
        char host[RENDEZVOUS_NAME_BYTES];
        char **argv;
        size_t argc;
        struct pb_arena arena; /* of a decoded one: it holds the strings */
};

struct rendezvous_end {
        int32_t exit_code;
        char message[RENDEZVOUS_MESSAGE_BYTES];
};

struct rendezvous_rank {
        uint32_t rank, lines; /* lines of progress so far; 0 = has said nothing */
        int64_t epoch, step, samples, epoch_samples;
        double loss, samples_per_s, busy_seconds, accuracy;
        bool has_accuracy;
        int32_t pid, exit_code; /* pid 0 = not started */
        bool stopped, ended;
        uint64_t ended_usec;
};

struct rendezvous_seen {
        char token[RENDEZVOUS_TOKEN_BYTES];
        char group[RENDEZVOUS_NAME_BYTES];
        uint32_t world;
        bool leaving;
        struct rendezvous_rank *ranks;
        size_t rank_count; /* at most RENDEZVOUS_CHIPS_MAX */
};

struct rendezvous_ask {
        uint32_t version;
        char token[RENDEZVOUS_TOKEN_BYTES];
};

/* Encoders: malloc'd bytes, NULL when out of memory. Decoders: 0, -EBADMSG with what is wrong, -ENOMEM. */
uint8_t *rendezvous_join_encode(const struct rendezvous_join *join, size_t *ret_bytes);
uint8_t *rendezvous_order_encode(const struct rendezvous_order *order, size_t *ret_bytes);
uint8_t *rendezvous_answer_encode(const struct rendezvous_answer *answer, size_t *ret_bytes);
uint8_t *rendezvous_start_encode(const struct rendezvous_start *start, size_t *ret_bytes);
uint8_t *rendezvous_end_encode(const struct rendezvous_end *end, size_t *ret_bytes);
uint8_t *rendezvous_seen_encode(const struct rendezvous_seen *seen, size_t *ret_bytes);
uint8_t *rendezvous_ask_encode(const struct rendezvous_ask *ask, size_t *ret_bytes);
uint8_t *rendezvous_state_encode(const char *json, size_t *ret_bytes);

int rendezvous_join_decode(const uint8_t *bytes, size_t size_bytes, struct rendezvous_join *ret,
                           struct err *err);
int rendezvous_order_decode(const uint8_t *bytes, size_t size_bytes, struct rendezvous_order *ret,
                            struct err *err);
int rendezvous_answer_decode(const uint8_t *bytes, size_t size_bytes, struct rendezvous_answer *ret,
                             struct err *err);
int rendezvous_start_decode(const uint8_t *bytes, size_t size_bytes, struct rendezvous_start *ret,
                            struct err *err);
int rendezvous_end_decode(const uint8_t *bytes, size_t size_bytes, struct rendezvous_end *ret,
                          struct err *err);
int rendezvous_seen_decode(const uint8_t *bytes, size_t size_bytes, struct rendezvous_seen *ret,
                           struct err *err);
int rendezvous_ask_decode(const uint8_t *bytes, size_t size_bytes, struct rendezvous_ask *ret,
                          struct err *err);
int rendezvous_state_decode(const uint8_t *bytes, size_t size_bytes, char **ret, struct err *err);

void rendezvous_seen_free(struct rendezvous_seen *seen);
void rendezvous_order_free(struct rendezvous_order *order);
void rendezvous_start_free(struct rendezvous_start *start);
