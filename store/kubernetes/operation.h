/* Operation: a write to the API server, or a read, of one call or several, each of which may be repeated.
 * What one kind of them does is in api_writes.c, api_read.c and events.c; nobody else includes this. */
#pragma once

#include "store/kubernetes/kube.h"
#include "store/store_internal.h"

#define OPERATION_CALL_USEC        (5 * UINT64_C(1000000))
#define OPERATION_TRIES_MAX        6
#define OPERATION_RETRY_FIRST_USEC UINT64_C(50000)
#define OPERATION_FIELD_MANAGER    "remuda"

/* Those of one store that are under way. */
struct operation_list {
        struct store *store; /* borrowed, as the client */
        struct kube_client *client;
        struct operation *first;
};

struct operation {
        struct operation_list *all;
        struct operation *previous, *next;
        enum store_kind kind;
        char *namespace_, *name, *uid, *node; /* each may be NULL */
        json_t *body, *status;                /* what is written; or NULL */
        store_answer answer;
        void *userdata;
        uint64_t end_usec;
        unsigned tries;
        bool creating; /* of a put or a change: the object itself is being made */
        bool unnamed;  /* the path is the collection's, though there is a name */
        bool disowned; /* of a put: it was refused with its owner */
        store_changer change;
        store_read_taker take; /* of a read */
        unsigned conflicts;    /* of a change */
        sd_event_source *waiting;
};

/* operation_new() - one of `namespace_` (NULL or "" = default) and `name` (NULL = none).
 * @uid: NULL or "" = any
 * Return: it, owned by the store; or NULL, and then the answer is given. */
struct operation *operation_new(struct operation_list *all, enum store_kind kind, const char *namespace_,
                                const char *name, const char *uid, store_answer answer, void *userdata);
void operation_free(struct operation *o);

/* operation_finish() - gives the answer and frees it; operation_answer_as() the answer that a reply is. */
void operation_finish(struct operation *o, int result, const char *sentence);
void operation_answer_as(struct operation *o, const struct http_call_result *result);

/* operation_call() - to the object's path + `suffix`; when the call cannot be made the operation is finished,
 * and so it is, with -EPERM, when store_options.may_commit() says no before a write leaves. */
void operation_call(struct operation *o, const char *method, const char *suffix, const char *content_type,
                    const json_t *body, void (*done)(void *userdata, const struct http_call_result *result));

/* operation_may_be_repeated() - was the call a failure that says nothing about the request itself?
 * operation_again() - once more, a little later. False: it has been tried often or long enough. */
bool operation_may_be_repeated(const struct http_call_result *result);
bool operation_again(struct operation *o, void (*step)(void *userdata));

void operation_cancel_all(struct operation_list *all); /* those that wait between two tries */
