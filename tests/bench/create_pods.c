/* create-pods KUBECONFIG COUNT POD.json: what the API server itself takes for so many pods, created by the
 * client that the job controller uses and as many at once as it likes. One line: seconds until the last
 * answer. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "store/store.h"

static unsigned left, failed;
static sd_event *loop;

static void on_created(void *userdata, int result, const char *sentence)
{
        (void) userdata;
        if (result < 0 && failed++ == 0)
                fprintf(stderr, "create-pods: %s\n", sentence);
        if (--left == 0)
                (void) sd_event_exit(loop, failed > 0);
}

static double now_sec(void)
{
        struct timespec now;

        (void) clock_gettime(CLOCK_MONOTONIC, &now);
        return (double) now.tv_sec + (double) now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
        struct store_options options = { .spec = "kubernetes", .kubeconfig = argc > 1 ? argv[1] : NULL };
        json_t *pod = argc > 3 ? json_load_file(argv[3], 0, NULL) : NULL;
        unsigned count = argc > 2 ? (unsigned) strtoul(argv[2], NULL, 10) : 0;
        struct store *store = NULL;
        struct err err = { 0 };
        double begin;
        int r;

        if (pod == NULL || count == 0 || sd_event_default(&loop) < 0) {
                fprintf(stderr, "usage: create-pods KUBECONFIG COUNT POD.json\n");
                return 2;
        }
        if (store_open(loop, &options, &store, &err) < 0) {
                fprintf(stderr, "create-pods: %s\n", err.msg);
                return 2;
        }
        begin = now_sec();
        left = count;
        for (unsigned i = 0; i < count; i++) {
                char name[32];

                (void) snprintf(name, sizeof(name), "bare-%05u", i);
                (void) json_object_set_new(json_object_get(pod, "metadata"), "name", json_string(name));
                store_create(store, STORE_POD, "default", pod, on_created, NULL);
        }
        r = sd_event_loop(loop);
        printf("%.3f\n", now_sec() - begin);
        store_close(store);
        json_decref(pod);
        sd_event_unref(loop);
        return r != 0;
}
