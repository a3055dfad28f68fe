/* Starts the world, watches it, and starts it again after a fault, until it succeeds or may not be repaired.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/exit_code.h"
#include "job/run/run_chips.h"
#include "job/run/run_watch.h"
#include "job/run/run_world.h"

#define FULL_BYTES       (64U << 10) /* less room than that is none */
#define KEEP_SPEEDS_USEC 30000000ULL /* how often what is seen refines the SpeedTable */

struct fault {
        char reason[48], message[400];
        bool final;   /* would happen again: the program refuses its options, is not there... */
        bool reshard; /* none: the shares are cut anew */
        bool sick;    /* a chip cannot be used any more: its rank has to move */
};

/* --- what is left of the sample logs
 * -------------------------------------------------------------------------------------- */

static void remove_logs(const struct run *run)
{
        static const char *const kinds[] = { "samples", "timeline" };

        for (size_t i = 0; i < run->rank_count; i++)
                for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
                        char name[64], path[RUN_PATH_BYTES];

                        (void) text_format(name, sizeof(name), "%s.%zu", kinds[k], i);
                        if (run_path(run, path, name))
                                (void) unlink(path);
                }
}

static void remove_output(const struct run *run)
{
        static const char *const kinds[] = { "out", "err", "report", "progress", "history" };
        char path[RUN_PATH_BYTES];

        for (size_t i = 0; i < run->rank_count; i++)
                for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
                        if (run_rank_path(run, path, i, kinds[k]))
                                (void) unlink(path);
        if (run_path(run, path, "mpirun.log"))
                (void) unlink(path);
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

/* The sample log holds exactly the samples that are in the weights; without it the ranks' own counts have to
 * do. */
static void count_samples(struct run *run)
{
        for (size_t i = run->server_count; i < run->rank_count; i++) {
                char name[64], path[RUN_PATH_BYTES];

                (void) text_format(name, sizeof(name), "samples.%zu", i);
                if (run->trainer && run->sample_log && run_path(run, path, name) && access(path, R_OK) == 0)
                        run->ranks[i].used_samples = count_lines(path);
                else
                        run->ranks[i].used_samples = run->ranks[i].seen.samples;
        }
}

/* --- faults
 * ------------------------------------------------------------------------------------------------------------------
 */

/* The last words of a rank, for the message. */
static void last_words(const struct run *run, size_t index, char words[160])
{
        char path[RUN_PATH_BYTES], bytes[1024];
        CLEANUP(close_p) int fd = -1;
        const char *line;
        ssize_t size;
        off_t end;

        words[0] = '\0';
        (void) run_rank_path(run, path, index, "err");
        fd = open(path, O_RDONLY | O_CLOEXEC);
        end = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
        if (end <= 0)
                return;
        size = pread(fd, bytes, sizeof(bytes) - 1,
                     end > (off_t) sizeof(bytes) - 1 ? end - (off_t) sizeof(bytes) + 1 : 0);
        while (size > 0 && (bytes[size - 1] == '\n' || bytes[size - 1] == ' '))
                size--;
        if (size <= 0)
                return;
        bytes[size] = '\0';
        line = strrchr(bytes, '\n');
        (void) text_copy(words, 160, line == NULL ? bytes : line + 1);
}

static void describe_rank(const struct run *run, size_t index, struct fault *fault)
{
        const struct run_rank *rank = &run->ranks[index];
        char words[160];

        if (rank->exit_code > 128) {
                (void) text_format(fault->message, sizeof(fault->message),
                                   "rank %zu (%s on %s) was killed by signal %d (%s)", index, rank->runtime,
                                   rank->device, rank->exit_code - 128, strsignal(rank->exit_code - 128));
                (void) text_copy(fault->reason, sizeof(fault->reason), "RankKilled");
                return;
        }
        last_words(run, index, words);
        for (size_t i = 0; words[0] == '\0' && i < run->rank_count;
             i++) /* programs may let one rank speak for all */
                last_words(run, i, words);
        (void) text_format(fault->message, sizeof(fault->message),
                           "rank %zu (%s on %s) ended with exit code %d%s%s", index, rank->runtime,
                           rank->device, rank->exit_code, words[0] == '\0' ? "" : ": ", words);
        (void) text_copy(fault->reason, sizeof(fault->reason), "RankFailed");
        /* a program that refuses its options or its data will refuse them again */
        fault->final = rank->exit_code == EXIT_USAGE || rank->exit_code == EXIT_NOT_FOUND ||
                       rank->exit_code == EXIT_NO_PERMISSION || rank->exit_code == 126 ||
                       rank->exit_code == 127;
}

static void describe_world(const struct world *world, struct fault *fault)
{
        (void) text_copy(fault->reason, sizeof(fault->reason), "WorldFailed");
        if (world->exit_code > 128)
                (void) text_format(fault->message, sizeof(fault->message), "mpirun was killed by signal %d",
                                   world->exit_code - 128);
        else
                (void) text_format(fault->message, sizeof(fault->message),
                                   "mpirun ended with exit code %d; mpirun.log in the job's folder says why",
                                   world->exit_code);
        fault->final = world->exit_code == 127;
}

/* --- one world
 * -----------------------------------------------------------------------------------------------------------------
 */

/* Health is looked at once a second; a machine of CPU groups alone has none to look at. */
static bool judge_chips(struct run *run, struct fault *fault)
{
        struct inventories now;
        bool accelerators = run->options->store != NULL;
        char why[160];
        size_t rank;

        for (size_t i = 0; i < run->rank_count; i++)
                accelerators = accelerators || strcmp(run->ranks[i].vendor, "cpu") != 0;
        if (!accelerators || run_now_usec() - run->chips_usec < 1000000)
                return false;
        run->chips_usec = run_now_usec();
        if (inventories_read(run, &now, NULL) < 0) /* could not be asked: not a verdict */
                return false;
        rank = chips_sick(run, &now, why, sizeof(why));
        inventories_free(&now);
        if (rank == run->rank_count)
                return false;
        fault->sick = true;
        (void) text_copy(fault->reason, sizeof(fault->reason), "DeviceUnhealthy");
        (void) text_format(fault->message, sizeof(fault->message),
                           "chip %s of rank %zu cannot be used any more: %s", run->ranks[rank].device, rank,
                           why);
        return true;
}

/* Return: true once all has to end. */
static bool judge(struct run *run, struct watch *watch, struct fault *fault)
{
        size_t rank = watch_failed(run);

        if (rank < run->rank_count) {
                describe_rank(run, rank, fault);
                return true;
        }
        if (judge_chips(run, fault))
                return true;
        rank = watch_hung(run, watch);
        if (rank == run->rank_count) {
                fault->reshard = run_reshard_pays(run);
                (void) text_copy(fault->reason, sizeof(fault->reason), fault->reshard ? "Resharding" : "");
                return fault->reshard;
        }
        (void) text_copy(fault->reason, sizeof(fault->reason), "RankHung");
        if (!run->ranks[rank].seen.heard)
                (void) text_format(fault->message, sizeof(fault->message),
                                   "rank %zu (%s on %s) hangs: it has not made one step", rank,
                                   run->ranks[rank].runtime, run->ranks[rank].device);
        else
                (void) text_format(fault->message, sizeof(fault->message),
                                   "rank %zu (%s on %s) has made no progress since step %llu", rank,
                                   run->ranks[rank].runtime, run->ranks[rank].device,
                                   (unsigned long long) run->ranks[rank].seen.step);
        return true;
}

/* SIGTERM to each rank's launcher, which passes it on: mpirun would give the ranks no time for a checkpoint.
 * Return: to how many. */
static size_t ask_ranks_to_end(const struct run *run)
{
        size_t asked = 0;

        for (size_t i = 0; i < run->rank_count; i++)
                if (run->ranks[i].launcher > 0 && !run->ranks[i].ended)
                        asked += kill(run->ranks[i].launcher, SIGTERM) == 0;
        return asked;
}

static bool all_have_ended(const struct run *run)
{
        for (size_t i = 0; i < run->rank_count; i++)
                if (!run->ranks[i].ended)
                        return false;
        return true;
}

/* Cancelled: the ranks first, mpirun and whatever is left when they are done or their time is over. */
static void leave(const struct run *run, const struct world *world, uint64_t *leaving_usec, bool *told)
{
        uint64_t now = run_now_usec();

        if (*told)
                return;
        if (*leaving_usec == 0 && ask_ranks_to_end(run) > 0) {
                *leaving_usec = now;
        } else if (*leaving_usec == 0 || now - *leaving_usec >= run->options->grace_seconds * 1000000ULL) {
                guard_terminate(&world->guard);
                *told = true;
        } else if (all_have_ended(run)) {
                guard_kill(&world->guard);
                *told = true;
        }
}

static void follow(struct run *run, struct world *world, struct watch *watch, struct fault *fault)
{
        uint64_t leaving_usec = 0;
        bool told = false;

        while (!world->ended) {
                run_pause(run, watch->changes, 100);
                watch_read(run, watch);
                if (run_now_usec() - run->kept_usec >= KEEP_SPEEDS_USEC)
                        run_refine_speeds(run);
                if (run->interrupted) {
                        leave(run, world, &leaving_usec, &told);
                } else if (fault->reason[0] == '\0' && judge(run, watch, fault)) {
                        run->fault_usec = run_now_usec();
                        guard_kill(&world->guard);
                }
                world_reap(run, world);
        }
        watch_read(run, watch);
        watch_end(watch);
}

static void add_job_arguments(const struct run *run, bool resume, struct arguments *args)
{
        if (run->trainer)
                trainer_arguments(run, resume, args);
        for (size_t i = 0; i < run->job.arg_count; i++)
                arguments_add(args, "%s", run->job.args[i]);
}

/* Where nothing can be written, no log can say so. */
static void note_full_folder(const struct run *run, struct fault *fault)
{
        size_t length = strlen(fault->message);
        char path[RUN_PATH_BYTES];
        struct statvfs fs;

        if (!run_path(run, path, ".") || statvfs(path, &fs) < 0)
                return;
        if ((uint64_t) (geteuid() == 0 ? fs.f_bfree : fs.f_bavail) * fs.f_frsize >= FULL_BYTES &&
            (fs.f_files == 0 || fs.f_ffree > 0))
                return;
        (void) text_format(fault->message + length, sizeof(fault->message) - length,
                           "; the file system of --work-dir '%.150s' is full: make room", run->work);
}

/* Return: 0 and fault->reason "" when the world succeeded. */
static int run_world(struct run *run, bool resume, struct fault *fault, struct err *err)
{
        struct arguments args = { 0 };
        struct watch watch;
        struct world world;
        uint64_t began = run_now_usec();
        int r = watch_open(run, &watch, err);

        if (r == 0) {
                add_job_arguments(run, resume, &args);
                r = world_start(run, 0, "rank", &args, &world, err);
        }
        arguments_free(&args);
        if (r == 0) {
                follow(run, &world, &watch, fault);
                run->training_seconds = (double) (run_now_usec() - began) / 1e6;
                if (fault->reason[0] == '\0' && world.exit_code != 0) {
                        if (watch_failed(run) < run->rank_count)
                                describe_rank(run, watch_failed(run), fault);
                        else
                                describe_world(&world, fault);
                }
                if (fault->reason[0] != '\0')
                        note_full_folder(run, fault);
        }
        watch_close(&watch);
        run_read_segments(run);
        return r;
}

/* --- the whole
 * --------------------------------------------------------------------------------------------------------------------
 */

static bool repair(struct run *run, const struct fault *fault)
{
        uint64_t max = job_restart_max(&run->job);

        run_event(run, fault->reason, "%s", fault->message);
        if (fault->final || run->restarts >= max) {
                run_finish(run, "Failed", fault->reason, "%s%s", fault->message,
                           fault->final || max == 0 ? "" : "; no restart is left");
                return false;
        }
        run->restarts++;
        if (run->fault_usec == 0)
                run->fault_usec = run_now_usec();
        for (size_t i = 0; i < run->rank_count; i++)
                run->ranks[i].restarts++;
        run_event(run, "Restarting", "restart %llu of %llu, from %s", (unsigned long long) run->restarts,
                  (unsigned long long) max,
                  run->checkpoint[0] == '\0' ? "the beginning" : "the last valid checkpoint");
        return true;
}

/* Return: 0 also when the job has ended because of it. */
static int migrate(struct run *run, struct err *err)
{
        struct inventories now;
        int r;

        if (!run->job.restart.migrate) {
                run_finish(run, "Failed", "DeviceUnhealthy",
                           "a chip cannot be used any more and spec.restart.migrate is false");
                return 0;
        }
        r = inventories_read(run, &now, err);
        if (r < 0)
                return r;
        r = chips_migrate(run, &now, err);
        inventories_free(&now);
        if (r < 0) {
                run_finish(run, "Failed", "NoSpareChip", "%s", err->msg);
                return 0;
        }
        return run_plan(run, err);
}

static int reshard(struct run *run, struct err *err)
{
        run->reshards++;
        run->reshard_usec = run_now_usec();
        for (size_t i = 0; i < run->rank_count; i++)
                run->ranks[i].restarts++;
        run_event(run, "Resharding",
                  "the shares are cut anew by the speeds that are seen now, from the last checkpoint");
        run_adopt_speeds(run);
        return run_plan(run, err);
}

int run_train(struct run *run, struct err *err)
{
        bool resume = run->options->resume && run->checkpoint[0] != '\0';
        int r = 0;

        remove_output(run);
        run_set_checkpoints_aside(run);
        /* 12 bytes a sample: beyond this the ranks' own counts have to do */
        run->sample_log = run->data_samples * run->job.epochs <= 100000000;
        run->kept_usec = run->first_world_usec = run_now_usec();
        run_event(run, "Started", "%zu ranks", run->rank_count);
        while (run->phase == NULL) {
                struct fault fault = { .reason = "" };

                if (!resume)
                        remove_logs(run);
                r = run_world(run, resume, &fault, err);
                if (r < 0)
                        break;
                if (run->interrupted)
                        run_finish(run, "Cancelled", "Interrupted", "cancelled by a signal");
                else if (fault.reason[0] == '\0')
                        run_finish(run, "Succeeded", "Completed", "every rank ended well");
                else if (fault.reshard)
                        r = reshard(run, err);
                else if (repair(run, &fault) && fault.sick)
                        r = migrate(run, err);
                if (r < 0)
                        break;
                resume = run->checkpoint[0] != '\0';
        }
        count_samples(run);
        if (run->phase != NULL && strcmp(run->phase, "Succeeded") == 0)
                run_refine_speeds(run);
        return r;
}
