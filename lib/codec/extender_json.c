#include "codec/extender_json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/cleanup.h"
#include "core/text.h"

/* --- request --- */

static int grow_nodes(struct extender_args *args, struct err *err)
{
        size_t capacity = args->node_capacity == 0 ? 1024 : args->node_capacity * 2;
        struct extender_node *nodes = realloc(args->nodes, capacity * sizeof(*nodes));

        if (nodes == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu nodes", capacity);
        args->nodes = nodes;
        if (args->full) {
                struct json_slice *objects = realloc(args->objects, capacity * sizeof(*objects));

                if (objects == NULL)
                        return err_set(err, -ENOMEM, "no memory for %zu nodes", capacity);
                args->objects = objects;
        }
        args->node_capacity = capacity;
        return 0;
}

static int add_node(struct extender_args *args, const struct json_slice *name,
                    const struct json_slice *object, struct err *err)
{
        if (args->node_count == EXTENDER_NODES_MAX)
                return err_set(err, -E2BIG, "more than %zu nodes are sent", EXTENDER_NODES_MAX);
        if (args->node_count == args->node_capacity && grow_nodes(args, err) < 0)
                return -ENOMEM;
        if (object != NULL)
                args->objects[args->node_count] = *object;
        args->nodes[args->node_count++] = (struct extender_node){
                .name = name->escaped ? NULL : name->bytes,
                .escaped = name->bytes,
                .name_bytes = (uint32_t) name->size_bytes,
                .escaped_bytes = (uint32_t) name->size_bytes,
        };
        return 0;
}

/* Names with escapes are decoded once all are known, into one block. */
static int decode_names(struct extender_args *args, struct err *err)
{
        size_t bytes = 0, used = 0;

        for (size_t i = 0; i < args->node_count; i++)
                bytes += args->nodes[i].name == NULL ? args->nodes[i].escaped_bytes : 0;
        if (bytes == 0) {
                for (size_t i = 0; i < args->node_count; i++)
                        if (args->nodes[i].name == NULL)
                                args->nodes[i].name = "";
                return 0;
        }
        args->names = malloc(bytes);
        if (args->names == NULL)
                return err_set(err, -ENOMEM, "no memory for the names");
        for (size_t i = 0; i < args->node_count; i++) {
                struct extender_node *node = &args->nodes[i];
                struct json_slice slice = { .bytes = node->escaped, .size_bytes = node->escaped_bytes };

                if (node->name != NULL)
                        continue;
                node->name = args->names + used;
                node->name_bytes = (uint32_t) json_slice_unescape(&slice, args->names + used);
                used += node->name_bytes;
        }
        return 0;
}

static int scan_names(struct json_scan *scan, struct extender_args *args, struct err *err)
{
        bool first = true;
        int r = json_scan_open(scan, '[', err);

        while (r == 0) {
                struct json_slice name;

                r = json_scan_more(scan, ']', first, err);
                if (r <= 0)
                        break;
                first = false;
                r = json_scan_string(scan, &name, err);
                if (r == 0)
                        r = add_node(args, &name, NULL, err);
        }
        return r;
}

/* metadata.name of a Node object. `found` stays empty when there is none. */
static int scan_name_in(struct json_scan *scan, bool in_metadata, struct json_slice *found, struct err *err)
{
        bool first = true;
        int r = json_scan_open(scan, '{', err);

        while (r == 0) {
                struct json_slice key, value;

                r = json_scan_more(scan, '}', first, err);
                if (r <= 0)
                        break;
                first = false;
                r = json_scan_key(scan, &key, err);
                if (r < 0)
                        break;
                if (!in_metadata && json_slice_is(&key, "metadata") && json_scan_kind(scan) == '{')
                        r = scan_name_in(scan, true, found, err);
                else if (in_metadata && json_slice_is(&key, "name") && json_scan_kind(scan) == '"')
                        r = json_scan_string(scan, found, err);
                else
                        r = json_scan_value(scan, &value, err);
        }
        return r;
}

static int scan_node_object(struct json_scan *scan, struct extender_args *args, struct err *err)
{
        struct json_slice object, name = { 0 };
        int r;

        (void) json_scan_kind(scan);
        object.bytes = scan->at;
        object.escaped = false;
        r = scan_name_in(scan, false, &name, err);
        if (r < 0)
                return r;
        object.size_bytes = (size_t) (scan->at - object.bytes);
        if (name.bytes == NULL)
                return err_set(err, -EBADMSG, "Nodes.items[%zu].metadata.name: is missing", args->node_count);
        return add_node(args, &name, &object, err);
}

static int scan_items(struct json_scan *scan, struct extender_args *args, struct err *err)
{
        bool first = true;
        int r;

        if (json_scan_kind(scan) == 'n')
                return json_scan_null(scan, err);
        r = json_scan_open(scan, '[', err);
        while (r == 0) {
                r = json_scan_more(scan, ']', first, err);
                if (r <= 0)
                        break;
                first = false;
                r = scan_node_object(scan, args, err);
        }
        return r;
}

static int scan_node_list(struct json_scan *scan, struct extender_args *args, struct err *err)
{
        bool first = true, seen = false;
        int r = json_scan_open(scan, '{', err);

        while (r == 0) {
                struct json_slice key, value;

                r = json_scan_more(scan, '}', first, err);
                if (r <= 0)
                        break;
                first = false;
                r = json_scan_key(scan, &key, err);
                if (r < 0)
                        break;
                if (!json_slice_is(&key, "items")) {
                        r = json_scan_value(scan, &value, err);
                } else if (seen) {
                        r = err_set(err, -EBADMSG, "Nodes.items: is given twice");
                } else {
                        seen = true;
                        r = scan_items(scan, args, err);
                }
        }
        return r;
}

/* What has been seen of ExtenderArgs. */
struct args_parts {
        struct json_slice pod;
        bool has_pod, has_nodes, has_names;
};

static int seen_twice(bool *seen, const char *name, struct err *err)
{
        if (*seen)
                return err_set(err, -EBADMSG, "%s: is given twice", name);
        *seen = true;
        return 0;
}

/* Names are what counts where both lists are given. */
static int take_names(struct json_scan *scan, struct extender_args *args, struct err *err)
{
        int r;

        if (json_scan_kind(scan) == 'n')
                return json_scan_null(scan, err);
        args->node_count = 0;
        args->full = false;
        args->named = true;
        r = scan_names(scan, args, err);
        return r < 0 ? err_wrap(err, r, "NodeNames") : 0;
}

static int take_nodes(struct json_scan *scan, struct extender_args *args, struct err *err)
{
        struct json_slice ignored;
        int r;

        if (args->named || json_scan_kind(scan) == 'n')
                return json_scan_value(scan, &ignored, err);
        args->full = true; /* and there are no nodes yet */
        r = scan_node_list(scan, args, err);
        return r < 0 ? err_wrap(err, r, "Nodes") : 0;
}

static int take_member(struct json_scan *scan, const struct json_slice *key, struct args_parts *parts,
                       struct extender_args *args, struct err *err)
{
        struct json_slice ignored;

        if (json_slice_is(key, "Pod"))
                return seen_twice(&parts->has_pod, "Pod", err) < 0 ? -EBADMSG
                                                                   : json_scan_value(scan, &parts->pod, err);
        if (json_slice_is(key, "Nodes"))
                return seen_twice(&parts->has_nodes, "Nodes", err) < 0 ? -EBADMSG
                                                                       : take_nodes(scan, args, err);
        if (json_slice_is(key, "NodeNames"))
                return seen_twice(&parts->has_names, "NodeNames", err) < 0 ? -EBADMSG
                                                                           : take_names(scan, args, err);
        return json_scan_value(scan, &ignored, err);
}

/* One pass over the text; the lists are taken as they come. */
static int scan_args(const char *body, size_t body_bytes, struct args_parts *parts,
                     struct extender_args *args, struct err *err)
{
        struct json_scan scan = json_scan_text(body, body_bytes);
        bool first = true;
        int r = json_scan_open(&scan, '{', err);

        while (r == 0) {
                struct json_slice key;

                r = json_scan_more(&scan, '}', first, err);
                if (r <= 0)
                        break;
                first = false;
                r = json_scan_key(&scan, &key, err);
                if (r == 0)
                        r = take_member(&scan, &key, parts, args, err);
        }
        return r < 0 ? r : json_scan_end(&scan, err);
}

static bool is_null(const struct json_slice *slice)
{
        return slice->bytes == NULL || json_slice_is(slice, "null");
}

static int decode_pod(const struct json_slice *slice, json_t **ret, struct err *err)
{
        json_error_t where;

        if (is_null(slice))
                return err_set(err, -EBADMSG, "Pod: is missing");
        *ret = json_loadb(slice->bytes, slice->size_bytes, JSON_REJECT_DUPLICATES, &where);
        if (*ret == NULL)
                return err_set(err, -EBADMSG, "Pod: line %d, column %d: %s", where.line, where.column,
                               where.text);
        return json_is_object(*ret) ? 0 : err_set(err, -EBADMSG, "Pod: must be an object");
}

int extender_args_decode(const char *body, size_t body_bytes, struct extender_args *ret, struct err *err)
{
        struct args_parts parts = { 0 };
        int r;

        *ret = (struct extender_args){ 0 };
        r = scan_args(body, body_bytes, &parts, ret, err);
        if (r == 0)
                r = decode_pod(&parts.pod, &ret->pod, err);
        return r < 0 ? r : decode_names(ret, err);
}

void extender_args_free(struct extender_args *args)
{
        json_decref(args->pod);
        free(args->nodes);
        free(args->objects);
        free(args->names);
        *args = (struct extender_args){ 0 };
}

static int bind_field(json_t *json, const char *name, const char **ret, struct err *err)
{
        const json_t *value = json_object_get(json, name);

        if (value == NULL || json_is_null(value))
                return err_set(err, -EBADMSG, "%s: is missing", name);
        if (!json_is_string(value) || json_string_length(value) == 0)
                return err_set(err, -EBADMSG, "%s: must be a string that is not empty", name);
        *ret = json_string_value(value);
        return 0;
}

int extender_bind_decode(const char *body, size_t body_bytes, struct extender_bind_args *ret, struct err *err)
{
        json_error_t where;
        int r;

        *ret = (struct extender_bind_args){ 0 };
        ret->json = json_loadb(body, body_bytes, JSON_REJECT_DUPLICATES, &where);
        if (ret->json == NULL)
                return err_set(err, -EBADMSG, "line %d, column %d: %s", where.line, where.column, where.text);
        if (!json_is_object(ret->json))
                return err_set(err, -EBADMSG, "the message must be an object");
        r = bind_field(ret->json, "PodName", &ret->pod_name, err);
        if (r == 0)
                r = bind_field(ret->json, "PodNamespace", &ret->pod_namespace, err);
        if (r == 0)
                r = bind_field(ret->json, "PodUID", &ret->pod_uid, err);
        if (r == 0)
                r = bind_field(ret->json, "Node", &ret->node, err);
        return r;
}

void extender_bind_free(struct extender_bind_args *args)
{
        json_decref(args->json);
        *args = (struct extender_bind_args){ 0 };
}

/* --- replies --- */

/* The size is added up first, so that one block is enough and appending is copying. */
struct reply {
        char *data;
        size_t size;
};

static void put(struct reply *reply, const char *bytes, size_t size_bytes)
{
        memcpy(reply->data + reply->size, bytes, size_bytes);
        reply->size += size_bytes;
}

#define PUT(reply, literal) put(reply, literal, sizeof(literal) - 1)

static void put_name(struct reply *reply, const struct extender_node *node)
{
        PUT(reply, "\"");
        put(reply, node->escaped, node->escaped_bytes);
        PUT(reply, "\"");
}

static char *finish(struct reply *reply, size_t *ret_bytes)
{
        reply->data[reply->size] = '\0';
        *ret_bytes = reply->size;
        return reply->data;
}

static bool passes(const struct extender_node *node)
{
        return node->verdict == REASON_NONE;
}

static void put_passing(struct reply *reply, const struct extender_args *args)
{
        bool first = true;

        if (args->full)
                PUT(reply, "{\"Nodes\":{\"metadata\":{},\"items\":[");
        else
                PUT(reply, "{\"Nodes\":null,\"NodeNames\":[");
        for (size_t i = 0; i < args->node_count; i++) {
                if (!passes(&args->nodes[i]))
                        continue;
                if (!first)
                        PUT(reply, ",");
                first = false;
                if (args->full)
                        put(reply, args->objects[i].bytes, args->objects[i].size_bytes);
                else
                        put_name(reply, &args->nodes[i]);
        }
        if (args->full)
                PUT(reply, "]},\"NodeNames\":null");
        else
                PUT(reply, "]");
}

static void put_failed(struct reply *reply, const struct extender_args *args, bool unresolvable)
{
        bool first = true;

        for (size_t i = 0; i < args->node_count; i++) {
                const struct extender_node *node = &args->nodes[i];
                const struct reason_text *text;

                if (passes(node) || node->verdict == EXTENDER_NODE_AGAIN)
                        continue;
                text = reason_text((enum reason) node->verdict);
                if (text->unresolvable != unresolvable)
                        continue;
                if (!first)
                        PUT(reply, ",");
                first = false;
                put_name(reply, node);
                PUT(reply, ":\"");
                put(reply, text->message, text->message_bytes); /* our own: nothing to escape */
                PUT(reply, "\"");
        }
}

static char *error_reply(const char *form, const char *error, size_t *ret_bytes)
{
        CLEANUP(free_p) char *quoted = NULL;
        json_t *string = json_string(error);
        struct text text = { 0 };

        if (string == NULL)
                string = json_string("the error is not UTF-8");
        quoted = json_dumps(string, JSON_ENCODE_ANY);
        json_decref(string);
        if (quoted == NULL)
                return NULL;
        text_append(&text, form);
        text_append(&text, quoted);
        text_append(&text, "}");
        return text_take(&text, ret_bytes);
}

char *extender_filter_encode(const struct extender_args *args, const char *error, size_t *ret_bytes)
{
        struct reply reply = { 0 };
        size_t bytes = 256;

        if (error != NULL && error[0] != '\0')
                return error_reply("{\"Nodes\":null,\"NodeNames\":null,\"FailedNodes\":{},"
                                   "\"FailedAndUnresolvableNodes\":{},\"Error\":",
                                   error, ret_bytes);
        for (size_t i = 0; i < args->node_count; i++) {
                const struct extender_node *node = &args->nodes[i];

                if (node->verdict == EXTENDER_NODE_AGAIN)
                        continue;
                bytes += 8 + node->escaped_bytes;
                if (!passes(node))
                        bytes += reason_text((enum reason) node->verdict)->message_bytes;
                else if (args->full)
                        bytes += args->objects[i].size_bytes;
        }
        reply.data = malloc(bytes);
        if (reply.data == NULL)
                return NULL;
        put_passing(&reply, args);
        PUT(&reply, ",\"FailedNodes\":{");
        put_failed(&reply, args, false);
        PUT(&reply, "},\"FailedAndUnresolvableNodes\":{");
        put_failed(&reply, args, true);
        PUT(&reply, "},\"Error\":\"\"}");
        return finish(&reply, ret_bytes);
}

char *extender_prioritize_encode(const struct extender_args *args, size_t *ret_bytes)
{
        struct reply reply = { 0 };
        size_t bytes = 8;
        bool first = true;

        for (size_t i = 0; i < args->node_count; i++)
                bytes += args->nodes[i].escaped_bytes + 32;
        reply.data = malloc(bytes);
        if (reply.data == NULL)
                return NULL;
        PUT(&reply, "[");
        for (size_t i = 0; i < args->node_count; i++) {
                const struct extender_node *node = &args->nodes[i];

                if (node->verdict == EXTENDER_NODE_AGAIN)
                        continue;
                if (!first)
                        PUT(&reply, ",");
                first = false;
                PUT(&reply, "{\"Host\":");
                put_name(&reply, node);
                PUT(&reply, ",\"Score\":");
                if (node->score >= 10)
                        PUT(&reply, "10");
                else
                        put(&reply, &"0123456789"[node->score], 1);
                PUT(&reply, "}");
        }
        PUT(&reply, "]");
        return finish(&reply, ret_bytes);
}

char *extender_bind_encode(const char *error, size_t *ret_bytes)
{
        return error_reply("{\"Error\":", error, ret_bytes);
}
