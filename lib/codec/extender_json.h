/* Extender JSON: the messages of the scheduler extender protocol (v1) <-> structs.
 *
 * Lists of 5,000 names and of whole Node objects never become a JSON tree: they are scanned in place and
 * echoed as they came. Only the pod is parsed (jansson). Slices point into the request's text. In memory
 * only. Keys are Go's field names; unknown ones are passed over. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "codec/json_scan.h"
#include "core/reason.h"

#define EXTENDER_NODES_MAX ((size_t) 1 << 20)

/* A node of the request, and what is to be answered about it. */
struct extender_node {
        const char *name;    /* decoded, not NUL-terminated */
        const char *escaped; /* as it stands in the text */
        uint32_t name_bytes, escaped_bytes;
        uint8_t verdict; /* enum reason, or EXTENDER_NODE_AGAIN */
        uint8_t score;
};

#define EXTENDER_NODE_AGAIN 255 /* a name that was sent before: answered once */

/* ExtenderArgs of filter and prioritize. */
struct extender_args {
        json_t *pod; /* owned */
        bool full;   /* Node objects were sent, not names */
        bool named;  /* names were sent */
        struct extender_node *nodes;
        struct json_slice *objects; /* full: the Node objects as they came, in the same order */
        size_t node_count, node_capacity;
        char *names; /* decoded forms of names with escapes */
};

struct extender_bind_args {
        json_t *json; /* owned; the strings live in it */
        const char *pod_name, *pod_namespace, *pod_uid, *node;
};

/* extender_args_decode() - Return: 0; -EBADMSG (what and where); -E2BIG; -ENOMEM. Release in any case. */
int extender_args_decode(const char *body, size_t body_bytes, struct extender_args *ret, struct err *err);
void extender_args_free(struct extender_args *args);

int extender_bind_decode(const char *body, size_t body_bytes, struct extender_bind_args *ret,
                         struct err *err);
void extender_bind_free(struct extender_bind_args *args);

/* Replies; malloc'd, the caller frees; NULL when out of memory.
 * ExtenderFilterResult: nodes whose verdict is REASON_NONE pass. With `error` no node is told of. */
char *extender_filter_encode(const struct extender_args *args, const char *error, size_t *ret_bytes);
char *extender_prioritize_encode(const struct extender_args *args, size_t *ret_bytes); /* HostPriorityList */
char *extender_bind_encode(const char *error, size_t *ret_bytes);                      /* "" = bound */
