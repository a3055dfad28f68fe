/* 10,000 scans of one machine in one process: memory and descriptors must not grow. The allocator settles in
 * the first half; a leak would go on in the second. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "agent/config/agent_config.h"
#include "agent/discovery/discovery.h"
#include "agent/health/judge.h"
#include "agent/tree/tree.h"
#include "agent/tree/tree_directory.h"
#include "agent/tree/tree_machine.h"
#include "agent/tree/tree_record.h"
#include "base/cleanup.h"

#define SCANS   10000
#define MACHINE "tests/data/machines/nvidia-h100-x8.machine"

static long resident_kib(void)
{
        CLEANUP(fclose_p) FILE *f = fopen("/proc/self/statm", "re");
        long pages = 0, size = 0;

        if (f == NULL || fscanf(f, "%ld %ld", &size, &pages) != 2)
                return 0;
        return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static unsigned descriptors(void)
{
        DIR *dir = opendir("/proc/self/fd");
        unsigned n = 0;

        for (const struct dirent *e = dir != NULL ? readdir(dir) : NULL; e != NULL; e = readdir(dir))
                n++;
        if (dir != NULL)
                (void) closedir(dir);
        return n;
}

static int scan(const struct tree *tree, struct judge *judge, const struct agent_config *config,
                struct inventory *told, uint64_t now_usec)
{
        const struct judge_callbacks nothing = { .userdata = NULL };
        struct inventory found;

        if (discovery_run(tree, NULL, &found, NULL) < 0 ||
            judge_scan(judge, config, told, &found, now_usec, now_usec, &nothing) < 0)
                return -1;
        inventory_free(told);
        *told = found;
        return 0;
}

int main(void)
{
        char folder[] = "/tmp/remuda-rescan-XXXXXX", root[64], command[96];
        struct tree *machine = NULL, *tree = NULL;
        struct judge judge = { 0 };
        struct agent_config config;
        struct inventory told;
        struct timespec begin, end;
        long first = 0, last;
        unsigned before = 0;
        struct err err = { 0 };
        double microseconds;

        inventory_init(&told);
        if (mkdtemp(folder) == NULL || tree_machine_open(MACHINE, &machine, &err) < 0)
                return 1;
        (void) text_format(root, sizeof(root), "%s/root", folder);
        if (tree_record_expand(machine, root, &err) < 0 || tree_directory_open(root, &tree, &err) < 0 ||
            agent_config_parse("none", NULL, 0, &config, &err) < 0)
                return 1;
        (void) resident_kib(); /* what looking takes is there before it counts */
        (void) descriptors();
        (void) clock_gettime(CLOCK_MONOTONIC, &begin);
        for (unsigned i = 0; i < SCANS; i++) {
                if (scan(tree, &judge, &config, &told, (uint64_t) i * 1000000) < 0)
                        return 1;
                if (i == SCANS / 2) {
                        first = resident_kib();
                        before = descriptors();
                }
        }
        (void) clock_gettime(CLOCK_MONOTONIC, &end);
        last = resident_kib();
        microseconds =
                ((double) (end.tv_sec - begin.tv_sec) * 1e6 + (double) (end.tv_nsec - begin.tv_nsec) / 1e3) /
                SCANS;
        printf("memory gained in the second half of 10,000 scans | %+ld KiB | 0 KiB | %s\n", last - first,
               last - first <= 0 ? "within" : "MISSED");
        printf("descriptors gained in it | %+d | 0 | %s\n", (int) descriptors() - (int) before,
               descriptors() == before ? "within" : "MISSED");
        printf("one scan of eight devices | %.0f us | 10000 us | %s\n", microseconds,
               microseconds <= 10000 ? "within" : "MISSED");
        judge_free(&judge);
        agent_config_free(&config);
        inventory_free(&told);
        tree_close(tree);
        tree_close(machine);
        (void) text_format(command, sizeof(command), "%s", folder);
        (void) fflush(stdout);
        return execlp("rm", "rm", "-rf", command, (char *) NULL);
}
