/* Who holds a device, from a procfs that is made here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/health/holders.h"
#include "base/cleanup.h"
#include "base/text.h"

#define POD     "0::/kubepods.slice/kubepods-pod1b4e28ba_2fa1_11d2_883f_0016d3cca427.slice/x.scope\n"
#define SERVICE "0::/system.slice/train.service\n"

/* clang-format off */
static const struct process {
        const char *pid, *what, *comm, *cgroup, *environ;
        size_t environ_bytes;
        const char *files[4];
        const char *devices; /* the ids that it holds */
        bool accounted;
} processes[] = {
        { "100", "a stranger with one device",   "python3",         SERVICE, "A=1", 4,                          { "/dev/nvidia0", "/dev/null" },                  "gpu-0 ", false },
        { "101", "two descriptors of one",       "python3",         SERVICE, "", 0,                             { "/dev/nvidia1", "/dev/nvidia1", "/dev/nvidia1" }, "gpu-1 ", false },
        { "102", "two devices",                  "python3",         SERVICE, "", 0,                             { "/dev/nvidia0", "/dev/nvidia1" },               "gpu-0 gpu-1 ", false },
        { "103", "the control file of all",      "python3",         SERVICE, "", 0,                             { "/dev/nvidiactl" },                             "", false },
        { "104", "nothing of ours",              "sh",              SERVICE, "", 0,                             { "/dev/tty", "socket:[1]", "/etc/passwd" },      "", false },
        { "105", "in a pod",                     "python3",         POD,     "", 0,                             { "/dev/nvidia0" },                               "gpu-0 ", true },
        { "106", "started by the launch door",   "python3",         SERVICE, "A=1\0REMUDA_DEVICES=gpu-0", 25,   { "/dev/nvidia0" },                               "gpu-0 ", true },
        { "107", "whose value names it alone",   "python3",         SERVICE, "A=REMUDA_DEVICES=1", 19,          { "/dev/nvidia0" },                               "gpu-0 ", false },
        { "108", "a vendor's daemon",            "nvidia-persiste", SERVICE, "", 0,                             { "/dev/nvidia0" },                               "gpu-0 ", true },
        { "112", "a daemon of a short name",     "Xorg",            SERVICE, "", 0,                             { "/dev/nvidia0" },                               "gpu-0 ", true },
        { "109", "a name that begins like one",  "Xorgy",           SERVICE, "", 0,                             { "/dev/nvidia0" },                               "gpu-0 ", false },
        { "110", "ended meanwhile",              NULL,              NULL,    NULL, 0,                           { NULL },                                         "", true },
        { "111", "a deleted file",               "python3",         SERVICE, "", 0,                             { "/dev/nvidia0 (deleted)" },                     "", false },
};
/* clang-format on */

static void put(const char *folder, const char *name, const char *bytes, size_t size)
{
        CLEANUP(fclose_p) FILE *f = NULL;
        char path[256];

        (void) text_format(path, sizeof(path), "%s/%s", folder, name);
        f = fopen(path, "we");
        assert_non_null(f);
        assert_int_equal(fwrite(bytes, 1, size, f), size);
}

static void make_process(const char *proc, const struct process *p)
{
        char folder[200], path[256];

        (void) text_format(folder, sizeof(folder), "%s/%s", proc, p->pid);
        if (p->comm == NULL)
                return;
        assert_int_equal(mkdir(folder, 0700), 0);
        (void) text_format(path, sizeof(path), "%s/fd", folder);
        assert_int_equal(mkdir(path, 0700), 0);
        (void) text_format(path, sizeof(path), "%s\n", p->comm);
        put(folder, "comm", path, strlen(path));
        put(folder, "cgroup", p->cgroup, strlen(p->cgroup));
        put(folder, "environ", p->environ, p->environ_bytes);
        for (size_t i = 0; i < ARRAY_SIZE(p->files) && p->files[i] != NULL; i++) {
                (void) text_format(path, sizeof(path), "%s/fd/%zu", folder, i);
                assert_int_equal(symlink(p->files[i], path), 0);
        }
}

static void make_devices(struct inventory *ret)
{
        inventory_init(ret);
        for (int i = 0; i < 2; i++) {
                struct device *d = inventory_add_device(ret);

                assert_non_null(d);
                (void) text_format(d->id, sizeof(d->id), "gpu-%d", i);
                (void) text_format(d->nodes[0], sizeof(d->nodes[0]), "/dev/nvidia%d", i);
                (void) text_copy(d->nodes[1], sizeof(d->nodes[1]), "/dev/nvidiactl");
                d->node_count = 2;
        }
}

static void on_found(void *userdata, const struct device *device)
{
        text_printf(userdata, "%s ", device->id);
}

static int by_name(const void *a, const void *b)
{
        return strcmp(*(char *const *) a, *(char *const *) b);
}

/* In the order of their ids: a folder is read in any. */
static void sort_words(char *words)
{
        char *word[4], copy[64];
        size_t n = 0;

        (void) text_copy(copy, sizeof(copy), words);
        for (char *w = strtok_r(copy, " ", &word[3]); w != NULL && n < 3; w = strtok_r(NULL, " ", &word[3]))
                word[n++] = w;
        qsort(word, n, sizeof(*word), by_name);
        words[0] = '\0';
        for (size_t i = 0; i < n; i++)
                (void) text_format(words + strlen(words), sizeof(copy) - strlen(words), "%s ", word[i]);
}

static void each_process_is_told_by_what_it_holds(void **state)
{
        char proc[] = "/tmp/remuda-holders-XXXXXX", command[64];
        CLEANUP(inventory_free) struct inventory told;

        (void) state;
        assert_non_null(mkdtemp(proc));
        make_devices(&told);
        for (size_t i = 0; i < ARRAY_SIZE(processes); i++) {
                const struct process *p = &processes[i];
                struct text found = { 0 };
                char held[64] = "";

                make_process(proc, p);
                holders_look(proc, p->pid, &told, on_found, &found);
                (void) text_copy(held, sizeof(held), found.data != NULL ? found.data : "");
                sort_words(held);
                if (strcmp(held, p->devices) != 0)
                        fail_msg("%s: want '%s', got '%s'", p->what, p->devices, held);
                if (holders_accounted(proc, p->pid) != p->accounted)
                        fail_msg("%s: %s", p->what,
                                 p->accounted ? "nobody answers for it" : "somebody answers for it");
                text_free(&found);
        }
        (void) text_format(command, sizeof(command), "rm -rf %s", proc);
        assert_int_equal(system(command), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_process_is_told_by_what_it_holds),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
