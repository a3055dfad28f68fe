/* Any bytes as a file of a dir: store, or as its journal: never a crash; a pod that was bound by the
 * journal's whole lines stays bound after a second reading. The first byte chooses the file's kind. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "io/loop.h"
#include "store/store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool synced;

static void on_changed(void *userdata, enum store_kind kind, const char *key, const json_t *object)
{
        (void) userdata;
        (void) kind;
        if (key[0] == '\0' || (object != NULL && !json_is_object(object)))
                abort();
}

static void on_synced(void *userdata, enum store_kind kind)
{
        (void) userdata;
        (void) kind;
        synced = true;
}

static void write_file(const char *folder, const char *name, const void *bytes, size_t size)
{
        char path[128];
        int fd;

        (void) text_format(path, sizeof(path), "%s/%s", folder, name);
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (fd < 0 || write(fd, bytes, size) != (ssize_t) size)
                abort();
        (void) close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const char *const names[] = { "a.json", "a.yaml", "bindings.jsonl", "evictions.jsonl",
                                             "pod.default.a.patch" };
        static const char pod[] = "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"uid\":\"u\"}}";
        static sd_event *loop;
        static char folder[] = "/tmp/remuda-fuzz-XXXXXX", spec[64];
        struct store_options options = { .spec = spec,
                                         .kinds = (1u << STORE_KIND_COUNT) - 1,
                                         .changed = on_changed,
                                         .synced = on_synced };
        struct store *store = NULL;
        const char *name;

        if (size < 1)
                return 0;
        if (loop == NULL) {
                if (loop_new(&loop, NULL) < 0 || mkdtemp(folder) == NULL)
                        abort();
                (void) text_format(spec, sizeof(spec), "dir:%s", folder);
                write_file(folder, "pod.json", pod, strlen(pod));
        }
        name = names[data[0] % 5];
        write_file(folder, name, data + 1, size - 1);
        synced = false;
        if (store_open(loop, &options, &store, NULL) == 0)
                for (int i = 0; i < 50 && !synced; i++)
                        (void) sd_event_run(loop, 1000);
        store_close(store);
        {
                char path[128];

                (void) text_format(path, sizeof(path), "%s/%s", folder, name);
                (void) unlink(path);
        }
        return 0;
}
