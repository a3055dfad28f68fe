/* The truth, and the objects in which it is told. */
#include "tests/model/world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/timestamp.h"

struct world world;

void world_trace(const char *fmt, ...)
{
        va_list ap;

        if (getenv("MODEL_TRACE") == NULL)
                return;
        va_start(ap, fmt);
        (void) vfprintf(stderr, fmt, ap);
        va_end(ap);
        (void) fputc('\n', stderr);
}

void world_break(const char *what, const char *fmt, ...)
{
        va_list ap;

        if (world.wrong != NULL)
                return;
        world.wrong = what;
        va_start(ap, fmt);
        (void) vsnprintf(world.detail, sizeof(world.detail), fmt, ap);
        va_end(ap);
}

const char *world_node_name(int node)
{
        static const char *const names[WORLD_NODES] = { "n0", "n1", "n2", "n3", "n4", "reserve" };

        return names[node];
}

unsigned world_held(int node)
{
        unsigned chips = 0;

        for (int i = 0; i < WORLD_PODS; i++)
                if (world.pods[i].exists && world.pods[i].node == node && !world.pods[i].ended)
                        chips += world.pods[i].chips;
        return chips;
}

void world_reset(struct chance *chance)
{
        static const char *const namespaces[] = { "honest", "hostile", "ops" };

        for (int i = 0; i < WORLD_PODS; i++) {
                json_decref(world.pods[i].labels);
                json_decref(world.pods[i].annotations);
        }
        memset(&world, 0, sizeof(world));
        world.chance = chance;
        world.doomed = -1;
        for (int n = 0; n < WORLD_NODES; n++)
                world.usable[n] = WORLD_CHIPS;
        for (int i = 0; i < WORLD_PODS; i++) {
                (void) snprintf(world.pods[i].name, sizeof(world.pods[i].name), "p%d", i);
                world.pods[i].namespace_ = namespaces[i % 3];
        }
}

static json_t *limits_json(const struct world_pod *pod)
{
        json_t *limits = json_object();
        char name[24];

        for (unsigned i = 0; i < pod->others; i++) {
                (void) snprintf(name, sizeof(name), "a%u.com/r", i);
                (void) json_object_set_new(limits, name, json_integer(pod->of_each));
        }
        (void) json_object_set_new(limits, WORLD_GPU, json_integer(pod->chips));
        return limits;
}

json_t *world_pod_json(const struct world_pod *pod)
{
        char uid[16], created[TIMESTAMP_BYTES];
        json_t *object, *metadata, *spec;

        (void) snprintf(uid, sizeof(uid), "u%u", pod->uid);
        timestamp_format(pod->created_usec, created);
        object = json_pack("{s:{s:s,s:s,s:s,s:s,s:O,s:O},s:{s:[{s:s,s:{s:o}}]},s:{s:s}}", "metadata", "name",
                           pod->name, "namespace", pod->namespace_, "uid", uid, "creationTimestamp", created,
                           "labels", pod->labels, "annotations", pod->annotations, "spec", "containers",
                           "name", "c", "resources", "limits", limits_json(pod), "status", "phase",
                           pod->ended ? "Succeeded" : "Running");
        if (object == NULL)
                abort();
        metadata = json_object_get(object, "metadata");
        spec = json_object_get(object, "spec");
        (void) json_object_set_new(metadata, "labels", json_copy(pod->labels));
        (void) json_object_set_new(metadata, "annotations", json_copy(pod->annotations));
        if (pod->node >= 0)
                (void) json_object_set_new(spec, "nodeName", json_string(world_node_name(pod->node)));
        if (pod->deleting)
                (void) json_object_set_new(metadata, "deletionTimestamp",
                                           json_string("2026-11-21T10:00:00Z"));
        return object;
}

void world_group_names(unsigned names, char *name, char *model)
{
        (void) snprintf(name, WORLD_NAME_BYTES, names == 0 ? "g" : "g%u-", names);
        (void) snprintf(model, WORLD_NAME_BYTES, names == 0 ? "H100" : "M%u", names);
}

json_t *world_inventory_json(int node)
{
        json_t *groups = json_array();

        for (int g = 0; g < 2; g++) {
                unsigned other =
                        world.usable[node] < WORLD_CHIPS / 2 ? 0 : world.usable[node] - WORLD_CHIPS / 2;
                char name[WORLD_NAME_BYTES], model[WORLD_NAME_BYTES];

                world_group_names(g == 1 ? world.names[node] : 0, name, model);
                (void) json_array_append_new(
                        groups, json_pack("{s:s+,s:s,s:s,s:s,s:s,s:i,s:i}", "name", name, g == 0 ? "0" : "1",
                                          "vendor", "nvidia", "runtime", "cuda", "model", model, "resource",
                                          WORLD_GPU, "total", WORLD_CHIPS / 2, "healthy",
                                          (int) (g == 1 ? other : world.usable[node] - other)));
        }
        return json_pack("{s:{s:s},s:{s:i,s:s,s:s,s:s,s:o,s:[]}}", "metadata", "name", world_node_name(node),
                         "status", "generation", 1, "bootID", "b", "nodeClass", "any", "pool",
                         node == WORLD_NODES - 1 ? "reserved" : "regular", "groups", groups, "devices");
}

json_t *world_node_json(int node)
{
        return json_pack("{s:{s:s},s:{s:{s:s}}}", "metadata", "name", world_node_name(node), "status",
                         "allocatable", WORLD_GPU, "8");
}
