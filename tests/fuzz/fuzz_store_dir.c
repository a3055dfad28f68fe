/* Any bytes as a file of a dir: store, or as its journal: never a crash; a pod that the journal's whole lines
 * bound stays bound after a second reading. The first byte chooses the file's kind. The directory is in
 * memory and nobody waits for it: the pieces that read are called as the store calls them. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/directory/binding.h"
#include "store/directory/reading.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = { "a.json", "a.yaml", "bindings.jsonl", "evictions.jsonl",
                                     "pod.default.a.patch" };
static void on_changed(void *userdata, enum store_kind kind, const char *key, const json_t *object)
{
        (void) userdata;
        (void) kind;
        if (key[0] == '\0' || (object != NULL && !json_is_object(object)))
                abort();
}

static void write_file(int folder, const char *name, const void *bytes, size_t size)
{
        int fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        if (fd < 0 || write(fd, bytes, size) != (ssize_t) size)
                abort();
        (void) close(fd);
}

static int make_folder(void)
{
        static const char pod[] = "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"uid\":\"u\"}}";
        static char path[] = "/dev/shm/remuda-fuzz-XXXXXX";
        int fd = mkdtemp(path) != NULL ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

        if (fd < 0)
                abort();
        write_file(fd, "pod.json", pod, strlen(pod));
        return fd;
}

static void read_all(struct store_dir *d, const char *name)
{
        struct object_file *pod = objects_file(&d->objects, "pod.json"),
                           *file = objects_file(&d->objects, name);
        const struct object *before, *after;
        char *node;

        if (pod == NULL || file == NULL)
                abort();
        reading_file(d, pod);
        (void) binding_read_journals(d, NULL);
        reading_file(d, file);
        before = objects_find(&d->objects, STORE_POD, "default/a");
        node = before != NULL && before->node != NULL ? strdup(before->node) : NULL;
        if (name == names[0])
                (void) reading_recheck(d, file, UINT64_MAX);
        (void) binding_read_journals(d, NULL);
        after = objects_find(&d->objects, STORE_POD, "default/a");
        if ((before == NULL) != (after == NULL) ||
            (after != NULL && strcmp(node != NULL ? node : "", after->node != NULL ? after->node : "") != 0))
                abort();
        free(node);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static int folder = -1;
        struct store_dir d = { .store = { .options = { .kinds = (1u << STORE_KIND_COUNT) - 1,
                                                       .changed = on_changed } } };
        const char *name;

        if (size < 1)
                return 0;
        if (folder < 0)
                folder = make_folder();
        d.fd = folder;
        d.queue_end = &d.queue;
        journal_init(&d.bindings, folder, "bindings.jsonl");
        journal_init(&d.evictions, folder, "evictions.jsonl");
        name = names[data[0] % 5];
        write_file(folder, name, data + 1, size - 1);
        read_all(&d, name);
        (void) unlinkat(folder, name, 0);
        journal_free(&d.bindings);
        journal_free(&d.evictions);
        objects_free(&d.objects);
        overlays_free(&d.overlays);
        commitments_free(&d.commitments);
        return 0;
}
