/* How long a dir: store takes from its opening to synced, and what it keeps: 5,000 nodes with inventories and
 * 50,000 bound pods, as three lists and then a file each. usage: bench_store_dir [DIR] (a directory of yours)
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "io/loop.h"
#include "store/store.h"

#define NODES 5000
#define PODS  50000

struct count {
        sd_event *loop;
        unsigned objects;
        int kinds_left;
};

static void on_changed(void *userdata, enum store_kind kind, const char *key, const json_t *object)
{
        struct count *c = userdata;

        (void) kind;
        (void) key;
        c->objects += object != NULL;
}

static void on_synced(void *userdata, enum store_kind kind)
{
        struct count *c = userdata;

        (void) kind;
        if (--c->kinds_left == 0)
                (void) sd_event_exit(c->loop, 0);
}

static void on_trouble(void *userdata, enum store_kind kind, const char *sentence)
{
        (void) userdata;
        (void) kind;
        fprintf(stderr, "%s\n", sentence);
}

static double now_sec(void)
{
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        return (double) t.tv_sec + (double) t.tv_nsec / 1e9;
}

static long rss_kib(void)
{
        char line[128];
        long kib = 0;
        FILE *f = fopen("/proc/self/status", "re");

        while (f != NULL && fgets(line, sizeof(line), f) != NULL)
                if (strncmp(line, "VmRSS:", 6) == 0)
                        kib = strtol(line + 6, NULL, 10);
        if (f != NULL)
                (void) fclose(f);
        return kib;
}

static void measure(const char *what, const char *path)
{
        char spec[4096];
        struct count c = { 0 };
        struct store *store = NULL;
        struct err err = { 0 };
        struct store_options options = { .spec = spec,
                                         .kinds = (1u << STORE_KIND_COUNT) - 1,
                                         .changed = on_changed,
                                         .synced = on_synced,
                                         .trouble = on_trouble,
                                         .userdata = &c };
        long before = rss_kib();
        double start = now_sec(), seconds;

        c.kinds_left = STORE_KIND_COUNT;
        (void) text_format(spec, sizeof(spec), "dir:%s", path);
        if (loop_new(&c.loop, &err) < 0 || store_open(c.loop, &options, &store, &err) < 0) {
                fprintf(stderr, "%s\n", err.msg);
                exit(1);
        }
        (void) loop_run(c.loop);
        seconds = now_sec() - start;
        printf("dir: store, %u objects %s, open to synced | %.2f s | <= 3 s | %s\n", c.objects, what, seconds,
               seconds <= 3 ? "within" : "MISSED");
        printf("dir: store, %u objects %s, memory kept | %.1f MiB | <= 24 MiB of the extender's 64 | %s\n",
               c.objects, what, (double) (rss_kib() - before) / 1024,
               rss_kib() - before <= 24 * 1024 ? "within" : "MISSED");
        store_close(store);
        sd_event_unref(c.loop);
        (void) malloc_trim(0);
}

static void write_node(FILE *f, int i)
{
        fprintf(f,
                "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"node-%05d\",\"uid\":\"n-%"
                "032d\",\"labels\":"
                "{\"kubernetes.io/hostname\":\"node-%05d\",\"kubernetes.io/"
                "os\":\"linux\"}},\"status\":{\"allocatable\":"
                "{\"cpu\":\"96\",\"memory\":\"1056Gi\",\"nvidia.com/gpu\":\"8\"},\"conditions\":"
                "[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
                i, i, i);
}

static void write_inventory(FILE *f, int i)
{
        fprintf(f,
                "{\"apiVersion\":\"remuda.dev/"
                "v1alpha1\",\"kind\":\"NodeAccelerators\",\"metadata\":{\"name\":\"node-%05d\"},"
                "\"status\":{\"generation\":12,\"nodeClass\":\"multi\",\"pool\":\"regular\",\"groups\":[{"
                "\"name\":\"nvidia-0\","
                "\"vendor\":\"nvidia\",\"runtime\":\"cuda\",\"model\":\"H100-SXM5-80GB\",\"resource\":"
                "\"nvidia.com/gpu\","
                "\"fabric\":\"nvlink\",\"total\":8,\"healthy\":8}],\"devices\":[",
                i);
        for (int k = 0; k < 8; k++)
                fprintf(f,
                        "%s{\"id\":\"GPU-%d-%d\",\"group\":\"nvidia-0\",\"index\":%d,\"health\":\"healthy\"}",
                        k ? "," : "", i, k, k);
        fprintf(f, "]}}");
}

static void write_pod(FILE *f, int i)
{
        fprintf(f,
                "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"pod-%06d\",\"namespace\":"
                "\"default\",\"uid\":"
                "\"aaaaaaaa-0000-0000-0000-%012d\",\"labels\":{\"app\":\"train\"}},\"spec\":{\"nodeName\":"
                "\"node-%05d\","
                "\"containers\":[{\"name\":\"c\",\"image\":\"registry.example/"
                "train:1\",\"resources\":{\"limits\":"
                "{\"nvidia.com/gpu\":\"1\"},\"requests\":{\"nvidia.com/"
                "gpu\":\"1\"}},\"env\":[{\"name\":\"A\",\"value\":"
                "\"0123456789012345678901234567890123456789\"},{\"name\":\"B\",\"value\":\"1\"}]}]},"
                "\"status\":{\"phase\":"
                "\"Running\"}}",
                i, i, i % NODES);
}

static FILE *create(const char *folder, const char *name)
{
        char path[256];
        FILE *f;

        (void) text_format(path, sizeof(path), "%s/%s", folder, name);
        f = fopen(path, "we");
        if (f == NULL)
                exit(1);
        return f;
}

static void fill(const char *folder, const char *noun, int count, void (*write)(FILE *f, int i), bool as_list)
{
        char name[64];
        FILE *f = NULL;

        for (int i = 0; i < count; i++) {
                if (!as_list || i == 0) {
                        (void) text_format(name, sizeof(name), "%s-%d.json", noun, i);
                        f = create(folder, name);
                }
                if (as_list)
                        fprintf(f, "%s", i == 0 ? "{\"kind\":\"List\",\"items\":[\n" : ",\n");
                write(f, i);
                if (!as_list)
                        (void) fclose(f);
        }
        if (as_list) {
                fprintf(f, "]}\n");
                (void) fclose(f);
        }
}

static void private_folder_remove(const char *folder)
{
        char command[300];

        (void) text_format(command, sizeof(command), "rm -rf '%s'", folder);
        if (system(command) != 0)
                fprintf(stderr, "cannot remove %s\n", folder);
}

int main(int argc, char **argv)
{
        if (argc > 1) {
                measure("given", argv[1]);
                return 0;
        }
        for (int as_list = 1; as_list >= 0; as_list--) {
                char folder[] = "/tmp/remuda-bench-XXXXXX";

                if (mkdtemp(folder) == NULL)
                        return 1;
                fill(folder, "node", NODES, write_node, as_list);
                fill(folder, "inventory", NODES, write_inventory, as_list);
                fill(folder, "pod", PODS, write_pod, as_list);
                measure(as_list ? "in three lists" : "a file each", folder);
                private_folder_remove(folder);
        }
        return 0;
}
