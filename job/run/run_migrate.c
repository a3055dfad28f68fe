/* Moves ranks from sick chips to spare ones, or goes on with fewer. The others keep their chips. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "job/run/run_chips.h"

static const struct inventory *node_of(const struct inventories *now, const char *name)
{
        for (size_t i = 0; i < now->count; i++)
                if (strcmp(now->items[i].node, name) == 0)
                        return &now->items[i];
        return NULL;
}

/* Return: NULL = usable; why not otherwise. A group whose devices are not listed is judged by nothing. */
static const char *trouble_of(const struct run_rank *rank, const struct inventories *now)
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

size_t chips_sick(const struct run *run, const struct inventories *now, char *ret_why, size_t why_bytes)
{
        for (size_t i = 0; i < run->rank_count; i++) {
                const char *why = trouble_of(&run->ranks[i], now);

                if (why == NULL)
                        continue;
                (void) text_copy(ret_why, why_bytes, why);
                return i;
        }
        return run->rank_count;
}

static bool is_taken(const struct run *run, const char *node, const char *device)
{
        for (size_t i = 0; i < run->rank_count; i++)
                if (strcmp(run->ranks[i].node, node) == 0 && strcmp(run->ranks[i].device, device) == 0)
                        return true;
        return false;
}

/* A spare chip for the rank: of its own model if there is one, since that is what the plan was made for. */
static const struct device *find_spare(const struct run *run, const struct run_rank *rank,
                                       const struct inventories *now, const struct inventory **ret_inventory)
{
        const struct device *best = NULL;

        for (size_t i = 0; i < now->count; i++)
                for (size_t k = 0; k < now->items[i].device_count; k++) {
                        const struct device *device = &now->items[i].devices[k];
                        const struct device_group *group =
                                inventory_find_group(&now->items[i], device->group);

                        if (!device->usable || group == NULL || !chips_are_here(now->items[i].node) ||
                            !chips_match(rank->role, group) || is_taken(run, now->items[i].node, device->id))
                                continue;
                        if (best != NULL && (strcmp(device->model, rank->device_model) != 0 ||
                                             strcmp(best->model, rank->device_model) == 0))
                                continue;
                        best = device;
                        *ret_inventory = &now->items[i];
                }
        return best;
}

static uint64_t ranks_of(const struct run *run, const struct job_role *role)
{
        uint64_t count = 0;

        for (size_t i = 0; i < run->rank_count; i++)
                count += run->ranks[i].role == role;
        return count;
}

static void move_rank(struct run *run, size_t index, const struct device *spare,
                      const struct inventory *inventory)
{
        struct run_rank *rank = &run->ranks[index];

        run_event(run, "Migrated", "rank %zu moves from %s to %s of group %s", index, rank->device, spare->id,
                  spare->group);
        (void) text_copy(rank->node, sizeof(rank->node), inventory->node);
        (void) text_copy(rank->device, sizeof(rank->device), spare->id);
        (void) text_copy(rank->group, sizeof(rank->group), spare->group);
        (void) text_copy(rank->vendor, sizeof(rank->vendor), spare->vendor);
        (void) text_copy(rank->device_model, sizeof(rank->device_model), spare->model);
        rank->device_index = spare->index;
}

int chips_migrate(struct run *run, const struct inventories *now, struct err *err)
{
        int changed = 0;

        for (size_t i = 0; i < run->rank_count;) {
                struct run_rank *rank = &run->ranks[i];
                const char *why = trouble_of(rank, now);
                const struct inventory *inventory = NULL;
                const struct device *spare = why == NULL ? NULL : find_spare(run, rank, now, &inventory);

                if (why == NULL) {
                        i++;
                        continue;
                }
                changed++;
                if (spare != NULL) {
                        move_rank(run, i++, spare, inventory);
                } else if (!rank->server && ranks_of(run, rank->role) > rank->role->min_chips) {
                        run_event(run, "LeftOut",
                                  "there is no spare chip for rank %zu (%s): the job goes on with fewer", i,
                                  rank->device);
                        run_leave_out(run, i);
                } else {
                        return err_set(err, -ENODEV,
                                       "chip %s of rank %zu cannot be used (%s) and there is no spare one",
                                       rank->device, i, why);
                }
        }
        return changed;
}

/* --- leaving a rank out
 * ------------------------------------------------------------------------------------------ */

static uint64_t newest_checkpoint_step(const struct run *run)
{
        const struct dirent *file;
        uint64_t newest = 0, step;
        DIR *folder = run->checkpoint[0] == '\0' ? NULL : opendir(run->checkpoint);

        while (folder != NULL && (file = readdir(folder)) != NULL) {
                char digits[32];

                if (!text_starts_with(file->d_name, "step-") || !text_ends_with(file->d_name, ".checkpoint"))
                        continue;
                (void) text_copy(digits, sizeof(digits), file->d_name + 5);
                digits[strcspn(digits, ".")] = '\0';
                if (text_parse_uint64(digits, &step) == 0 && step > newest)
                        newest = step;
        }
        if (folder != NULL)
                (void) closedir(folder);
        return newest;
}

/* "epoch step rank sample": keeps what is in the checkpoint. Return: how many lines stay. */
static uint64_t cut_log(const char *path, uint64_t first_step_after)
{
        CLEANUP(fclose_p) FILE *f = fopen(path, "r+e");
        CLEANUP(free_p) char *line = NULL;
        size_t size = 0;
        uint64_t kept = 0;
        long end = 0;

        while (f != NULL && getline(&line, &size, f) > 0) {
                char *rest = strchr(line, ' '), *after = NULL;
                uint64_t step = rest == NULL ? 0 : strtoull(rest, &after, 10);

                if (rest == NULL || after == rest || step >= first_step_after)
                        break;
                kept++;
                end = ftell(f);
        }
        if (f != NULL)
                (void) !ftruncate(fileno(f), end);
        return kept;
}

void run_leave_out(struct run *run, size_t rank)
{
        uint64_t step = newest_checkpoint_step(run);
        char name[64], path[RUN_PATH_BYTES], aside[RUN_PATH_BYTES];

        /* the last rank's file is the one that nobody continues: the others are cut back by their owners */
        (void) text_format(name, sizeof(name), "samples.%zu", run->rank_count - 1);
        if (run->trainer && run_path(run, path, name) && access(path, R_OK) == 0) {
                run->left_samples += cut_log(path, step);
                (void) text_format(name, sizeof(name), "samples-left.%zu-%llu", run->rank_count - 1,
                                   (unsigned long long) run->restarts);
                if (run_path(run, aside, name))
                        (void) rename(path, aside);
        }
        free(run->ranks[rank].layer_ms);
        memmove(&run->ranks[rank], &run->ranks[rank + 1], (run->rank_count - rank - 1) * sizeof(*run->ranks));
        run->rank_count--;
}
