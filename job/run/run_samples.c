/* Sample logs are counted and cut; checkpoints are looked for. */
#include "job/run/run_samples.h"
#include "job/run/run_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

void run_samples_remove(const struct run *run)
{
        static const char *const kinds[] = { "samples", "timeline" };

        for (size_t i = 0; i < run->rank_count; i++)
                for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
                        char name[64], path[RUN_PATH_BYTES];

                        (void) text_format(name, sizeof(name), "%s.%zu", kinds[k], i);
                        if (run_folder_path(run, path, name))
                                (void) unlink(path);
                }
}

static uint64_t count_lines(const char *path)
{
        CLEANUP(free_p) char *buffer = malloc(1 << 16);
        CLEANUP(close_p) int fd = open(path, O_RDONLY | O_CLOEXEC);
        uint64_t lines = 0;
        ssize_t size;

        while (fd >= 0 && buffer != NULL && (size = read(fd, buffer, 1 << 16)) > 0)
                for (const char *at = buffer; (at = memchr(at, '\n', (size_t) (buffer + size - at))) != NULL;
                     at++)
                        lines++;
        return lines;
}

void run_samples_count(struct run *run)
{
        for (size_t i = run->server_count; i < run->rank_count; i++) {
                char name[64], path[RUN_PATH_BYTES];

                (void) text_format(name, sizeof(name), "samples.%zu", i);
                if (run->trainer && run->sample_log && run_folder_path(run, path, name) &&
                    access(path, R_OK) == 0)
                        run->ranks[i].used_samples = count_lines(path);
                else if (i < run->world.rank_count)
                        run->ranks[i].used_samples =
                                progress_samples(&run->world.seen[i], run->ranks[i].batch);
        }
}

/* Return: is there a checkpoint? @ret_step: of the newest that says it in its name, step-N.checkpoint; else 0
 */
static bool newest_checkpoint(const struct run *run, uint64_t *ret_step)
{
        const struct dirent *file;
        DIR *folder = run->checkpoint[0] == '\0' ? NULL : opendir(run->checkpoint);
        bool found = false;
        uint64_t step;

        *ret_step = 0;
        while (folder != NULL && (file = readdir(folder)) != NULL) {
                char digits[32];

                if (!text_ends_with(file->d_name, ".checkpoint"))
                        continue;
                found = true;
                if (!text_starts_with(file->d_name, "step-"))
                        continue;
                (void) text_copy(digits, sizeof(digits), file->d_name + 5);
                digits[strcspn(digits, ".")] = '\0';
                if (text_parse_uint64(digits, &step) == 0 && step > *ret_step)
                        *ret_step = step;
        }
        if (folder != NULL)
                (void) closedir(folder);
        return found;
}

bool run_samples_saved(const struct run *run)
{
        uint64_t step;

        return newest_checkpoint(run, &step);
}

/* Keeps what was done before a step. Return: how many lines stay. */
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

/* The last rank's file is the one that nobody continues: the others are cut back by their owners. */
void run_samples_leave(struct run *run)
{
        char name[64], path[RUN_PATH_BYTES], aside[RUN_PATH_BYTES];
        uint64_t step;

        (void) newest_checkpoint(run, &step);
        (void) text_format(name, sizeof(name), "samples.%zu", run->rank_count - 1);
        if (!run->trainer || !run_folder_path(run, path, name) || access(path, R_OK) < 0)
                return;
        run->left_samples += cut_log(path, step);
        (void) text_format(name, sizeof(name), "samples-left.%zu-%llu", run->rank_count - 1,
                           (unsigned long long) run->world.restarts);
        if (run_folder_path(run, aside, name))
                (void) rename(path, aside);
}
