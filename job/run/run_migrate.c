/* Looks at inventories, offers spare chips, and moves ranks. */
#include "job/run/run_migrate.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "io/clock.h"
#include "job/run/run_chips.h"
#include "job/run/run_samples.h"

static const struct inventory *node_of(const struct run_chips *now, const char *name)
{
        for (size_t i = 0; i < now->count; i++)
                if (strcmp(now->items[i].node, name) == 0)
                        return &now->items[i];
        return NULL;
}

/* Return: NULL = usable; why not otherwise. A group whose devices are not listed is judged by nothing. */
static const char *trouble_of(const struct run_rank *rank, const struct run_chips *now)
{
        const struct inventory *inventory = node_of(now, rank->node);
        const struct device *device =
                inventory == NULL ? NULL : inventory_find_device(inventory, rank->device);

        if (inventory == NULL)
                return "its node reports no more";
        if (device == NULL)
                return strcmp(rank->device, rank->group) == 0 ? NULL : "it is gone";
        if (device->usable)
                return NULL;
        return device->message[0] != '\0' ? device->message : device_health_name(device->health);
}

static void offer_spare(struct run *run, size_t index, const struct run_chips *now)
{
        bool found = run_chips_spare(run, now, index);
        const struct device *spare = &run->ranks[index].spare_device;
        char name[2 * WORLD_NAME_BYTES] = "";

        if (found)
                (void) text_format(name, sizeof(name), "%s of group %s", spare->id, spare->group);
        world_observe(&run->world,
                      &(struct world_fact){ .kind = WORLD_STAND_IN,
                                            .index = index,
                                            .code = found ? (int) index : WORLD_NOBODY,
                                            .text = name },
                      clock_monotonic_usec());
}

void run_migrate_fact(struct world *world, size_t rank, const char *trouble, uint64_t now_usec)
{
        bool there = world->places[rank].there;

        if (there && trouble != NULL)
                world_observe(
                        world,
                        &(struct world_fact){
                                .kind = WORLD_LOST, .index = rank, .code = WORLD_SICK, .text = trouble },
                        now_usec);
        else if (!there && trouble == NULL)
                world_observe(world, &(struct world_fact){ .kind = WORLD_HERE, .index = rank }, now_usec);
}

void run_migrate_look(struct run *run, bool spares)
{
        struct run_chips now;

        if (run_chips_read(run, &now, NULL) < 0)
                return;
        for (size_t i = 0; i < run->rank_count && i < run->world.place_count; i++)
                run_migrate_fact(&run->world, i, trouble_of(&run->ranks[i], &now), clock_monotonic_usec());
        for (size_t i = 0; spares && i < run->rank_count && i < run->world.place_count; i++)
                if (!run->world.places[i].there)
                        offer_spare(run, i, &now);
        run_chips_free(&now);
}

void run_migrate_move(struct run *run, size_t index)
{
        struct run_rank *rank = &run->ranks[index];
        const struct device *to = &rank->spare_device;

        (void) text_copy(rank->node, sizeof(rank->node), rank->spare_node);
        (void) text_copy(rank->device, sizeof(rank->device), to->id);
        (void) text_copy(rank->group, sizeof(rank->group), to->group);
        (void) text_copy(rank->vendor, sizeof(rank->vendor), to->vendor);
        (void) text_copy(rank->device_model, sizeof(rank->device_model), to->model);
        (void) text_copy(rank->pci, sizeof(rank->pci), to->pci);
        rank->device_index = to->ordinal;
        rank->spare_device.id[0] = '\0';
        run_migrate_fact(&run->world, index, NULL, clock_monotonic_usec());
}

void run_migrate_leave_out(struct run *run, size_t rank)
{
        run_samples_leave(run);
        free(run->ranks[rank].layer_ms);
        memmove(&run->ranks[rank], &run->ranks[rank + 1], (run->rank_count - rank - 1) * sizeof(*run->ranks));
        run->rank_count--;
}

bool run_migrate_do_without(struct run *run, size_t index)
{
        const struct run_rank *rank = &run->ranks[index];
        uint64_t count = 0;

        for (size_t i = 0; i < run->rank_count; i++)
                count += run->ranks[i].role == rank->role;
        if (count <= rank->role->min_chips)
                return false;
        run_event(run, "NotAdded", "rank %zu (%s on %s) would slow the job", index, rank->runtime,
                  rank->device);
        run_migrate_leave_out(run, index);
        return true;
}
