/* Labels and annotations are sound, odd or cannot be read. */
#include "tests/model/tenants.h"

#include <stdio.h>
#include <string.h>

#include "tests/model/views.h"
#include "tests/model/world.h"

static const char *const label_names[] = { "remuda.dev/gang-size",   "remuda.dev/preemptible",
                                           "remuda.dev/urgency",     "remuda.dev/job",
                                           "remuda.dev/max-seconds", "remuda.dev/same-group" };
static const char *const label_values[] = { "2",     "true", "emergency", "a",    "x",
                                            "false", "16",   "-1",        "1e20", "" };
static const char *const annotation_names[] = { "remuda.dev/models", "remuda.dev/groups", "remuda.dev/batch",
                                                "remuda.dev/gang", "remuda.dev/placement" };
static const char *const annotation_values[] = { "H100", "g0=1",           "g1=4",      "64",     "A100",
                                                 "x",    WORLD_GPU "=4x2", "g0=4,g1=4", "packed", "g0=8",
                                                 "=",    "g0=4,g0=4",      "g0=1,g0=1" };

static void scribble(struct world_pod *pod)
{
        char model[WORLD_NAME_BYTES];

        if (chance_of(world.chance, 10)) { /* a model that a node has, or had, or nobody */
                (void) snprintf(model, sizeof(model), "M%u",
                                world.renames - (unsigned) chance_below(world.chance, 3));
                (void) json_object_set_new(pod->annotations, "remuda.dev/models", json_string(model));
        } else if (chance_of(world.chance, 50))
                (void) json_object_set_new(pod->labels, WORLD_PICK(label_names),
                                           json_string(WORLD_PICK(label_values)));
        else
                (void) json_object_set_new(pod->annotations, WORLD_PICK(annotation_names),
                                           json_string(WORLD_PICK(annotation_values)));
}

void tenants_make(int index)
{
        struct world_pod *pod = &world.pods[index];

        json_decref(pod->labels);
        json_decref(pod->annotations);
        pod->labels = json_object();
        pod->annotations = json_object();
        pod->uid = ++world.uids;
        pod->exists = true;
        pod->ended = pod->deleting = pod->right = false;
        pod->node = -1;
        pod->created_usec = stand_ins_realtime_usec / 1000000 * 1000000;
        pod->chips = 1u << chance_below(world.chance, chance_of(world.chance, 30) ? 4 : 3);
        pod->of_each = (unsigned) chance_below(world.chance, 2);
        pod->others = chance_of(world.chance, 80) ? 0 : pod->of_each == 0 ? 70 : 15;
        if (chance_of(world.chance, 30))
                (void) json_object_set_new(pod->labels, "remuda.dev/preemptible", json_string("true"));
        if (strcmp(pod->namespace_, "ops") == 0 && chance_of(world.chance, 40))
                (void) json_object_set_new(pod->labels, "remuda.dev/urgency", json_string("emergency"));
        for (size_t n = chance_below(world.chance, 4); n > 2; n--)
                scribble(pod);
        views_tell_pod(index);
}

void tenants_make_urgent(int index)
{
        struct world_pod *pod = &world.pods[index];

        tenants_make(index);
        json_object_clear(pod->annotations);
        json_object_clear(pod->labels);
        (void) json_object_set_new(pod->labels, "remuda.dev/urgency", json_string("emergency"));
        (void) json_object_set_new(pod->labels, "remuda.dev/job", json_string("fire"));
        (void) json_object_set_new(pod->labels, "remuda.dev/gang-size", json_string("2"));
        pod->chips = WORLD_CHIPS / 2;
        pod->others = 0; /* of which no node has any: it would go nowhere */
        views_tell_pod(index);
}

void tenants_remove(int index)
{
        world.pods[index].exists = false;
        world.pods[index].node = -1;
        views_tell_pod(index);
}

void tenants_step_make(void)
{
        int index = (int) chance_below(world.chance, WORLD_PODS);

        if (!world.pods[index].exists)
                tenants_make(index);
}

void tenants_step_scribble(void)
{
        int index = (int) chance_below(world.chance, WORLD_PODS);

        if (!world.pods[index].exists || (world.pods[index].node < 0 && chance_of(world.chance, 80)))
                return; /* mostly those that are on a node already */
        scribble(&world.pods[index]);
        views_tell_pod(index);
}

void tenants_step_life(void)
{
        int index = (int) chance_below(world.chance, WORLD_PODS);
        struct world_pod *pod = &world.pods[index];

        if (!pod->exists || (pod->node < 0 && chance_of(world.chance, 80)))
                return;
        switch (chance_below(world.chance, 6)) {
        case 0:
                pod->ended = pod->ended || pod->node >= 0;
                break;
        case 1:
                pod->deleting = true;
                break;
        case 2: /* force-deleted */
                pod->exists = false;
                break;
        case 3: /* another of its name at once */
                pod->exists = false;
                views_tell_pod(index);
                tenants_make(index);
                return;
        case 4:
                pod->exists = !pod->deleting;
                break;
        default:
                pod->exists = !pod->ended;
                break;
        }
        if (!pod->exists)
                pod->node = -1;
        views_tell_pod(index);
}
