/* From lines to pods, and onto their JSON. */
#include "store/directory/commitments.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void commitment_free(struct commitment *c)
{
        free(c->node);
        free(c->deletion_time);
        free(c->key);
        json_decref(c->annotations);
        free(c);
}

void commitments_free(struct commitments *all)
{
        for (struct name_map_entry *e = name_map_first(&all->by_pod), *next; e != NULL; e = next) {
                next = name_map_next(&all->by_pod, e);
                commitment_free((struct commitment *) e);
        }
        name_map_free(&all->by_pod);
}

const struct commitment *commitments_of(const struct commitments *all, const char *uid, const char *pod)
{
        return (struct commitment *) name_map_find(&all->by_pod, uid != NULL && uid[0] != '\0' ? uid : pod);
}

static struct commitment *find_or_add(struct commitments *all, const char *uid, const char *pod)
{
        const char *key = uid != NULL && uid[0] != '\0' ? uid : pod;
        struct commitment *c = (struct commitment *) name_map_find(&all->by_pod, key);

        if (c != NULL)
                return c;
        c = calloc(1, sizeof(*c) + strlen(pod) + 1);
        if (c == NULL)
                return NULL;
        memcpy(c->pod, pod, strlen(pod) + 1);
        c->key = strdup(key);
        c->entry.key = c->key;
        if (c->key != NULL && name_map_insert(&all->by_pod, &c->entry) == 0)
                return c;
        commitment_free(c);
        return NULL;
}

const struct commitment *commitments_take(struct commitments *all, const json_t *line, const char *pod,
                                          struct err *err)
{
        const char *uid = json_string_value(json_object_get(line, "uid"));
        const char *node = json_string_value(json_object_get(line, "node"));
        const char *deleted = json_string_value(json_object_get(line, "deletionTimestamp"));
        json_t *annotations = json_object_get(line, "annotations");
        struct commitment *c = node != NULL || deleted != NULL ? find_or_add(all, uid, pod) : NULL;

        if (c == NULL)
                return NULL;
        if (node != NULL && c->node != NULL && strcmp(c->node, node) != 0)
                (void) err_set(err, -EALREADY,
                               "bindings.jsonl binds pod '%s' to '%s' and to '%s': the first line counts",
                               c->pod, c->node, node);
        if (node != NULL && c->node == NULL) {
                c->node = strdup(node);
                c->annotations = json_object_size(annotations) > 0 ? json_deep_copy(annotations) : NULL;
        }
        if (deleted != NULL && c->deletion_time == NULL)
                c->deletion_time = strdup(deleted);
        return c;
}

static json_t *member(json_t *object, const char *name)
{
        json_t *value = json_object_get(object, name);

        if (!json_is_object(value)) {
                value = json_object();
                (void) json_object_set_new(object, name, value);
        }
        return value;
}

void commitments_apply(const struct commitment *c, json_t *pod)
{
        json_t *metadata = member(pod, "metadata");

        if (c->node != NULL)
                (void) json_object_set_new(member(pod, "spec"), "nodeName", json_string(c->node));
        if (c->annotations != NULL)
                (void) json_object_update(member(metadata, "annotations"), c->annotations);
        if (c->deletion_time != NULL && !json_is_string(json_object_get(metadata, "deletionTimestamp")))
                (void) json_object_set_new(metadata, "deletionTimestamp", json_string(c->deletion_time));
}
