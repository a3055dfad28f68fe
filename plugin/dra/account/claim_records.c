/* Claim records: what the CDI specs of a folder say of the claims that they are of. */
#include "plugin/dra/account/claim_records.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/json/json_read.h"
#include "io/read_file.h"
#include "plugin/dra/claim_cdi.h"

struct spec {
        char uid[DRA_STATE_UID_BYTES];
        struct timespec written;
};

struct specs {
        struct spec *list;
        size_t count, capacity;
};

/* By the rule that Prepare goes by; how much of a device a share may have nobody knows here. */
static int check_free(const struct dra_state *state, const struct dra_state_claim *claim, struct err *err)
{
        for (size_t i = 0; i < claim->device_count; i++) {
                const struct dra_state_device *device = &claim->devices[i];
                const struct dra_state_claim *holder =
                        device->admin ? NULL : dra_state_rival(state, claim, i, NULL);

                if (holder != NULL)
                        return err_set(err, -EBUSY, "its device '%s' is held by claim %s/%.200s", device->id,
                                       holder->namespace_, holder->name);
        }
        return 0;
}

static int read_record(const char *bytes, size_t size_bytes, struct dra_state *ret, struct err *err)
{
        json_t *spec = json_read(bytes, size_bytes, JSON_REJECT_DUPLICATES, err);
        const char *line = json_read_word(json_object_get(spec, "annotations"), CLAIM_CDI_RECORD);
        int r = -EBADMSG;

        if (spec != NULL && line[0] == '\0')
                (void) err_set(err, r, "it has no annotation " CLAIM_CDI_RECORD);
        else if (spec != NULL)
                r = dra_state_apply(ret, line, strlen(line), err);
        json_decref(spec);
        return r;
}

int claim_record_take(struct dra_state *state, const char *uid, const char *bytes, size_t size_bytes,
                      struct err *err)
{
        struct dra_state one = { .count = 0 };
        int r = read_record(bytes, size_bytes, &one, err);

        if (r == 0 && (one.count != 1 || strcmp(one.claims[0].uid, uid) != 0))
                r = err_set(err, -EBADMSG, "its annotation " CLAIM_CDI_RECORD " is not of this claim");
        if (r == 0)
                r = check_free(state, &one.claims[0], err);
        if (r == 0 && (r = dra_state_add(state, &one.claims[0])) < 0)
                (void) err_set(err, r, "no room for another claim");
        dra_state_free(&one);
        return r;
}

static int later_first(const void *a, const void *b)
{
        const struct spec *one = a, *other = b;

        if (one->written.tv_sec != other->written.tv_sec)
                return one->written.tv_sec > other->written.tv_sec ? -1 : 1;
        if (one->written.tv_nsec != other->written.tv_nsec)
                return one->written.tv_nsec > other->written.tv_nsec ? -1 : 1;
        return strcmp(one->uid, other->uid);
}

/* Return: 0; -ENOENT: it is gone by now; or another negative errno. */
static int add_spec(const char *directory, const char *uid, struct specs *specs, struct err *err)
{
        char path[CLAIM_CDI_PATH_BYTES];
        struct spec *spec;
        struct stat st;

        if (!claim_cdi_path(directory, uid, path))
                return err_set(err, -ENAMETOOLONG, "--cdi-dir: the path is too long");
        if (stat(path, &st) < 0)
                return err_set(err, -errno, "CDI spec '%s': %m", path);
        if (!S_ISREG(st.st_mode)) /* nobody's record, and nobody sweeps it */
                return 0;
        spec = array_add(&specs->list, &specs->count, &specs->capacity, sizeof(*spec));
        if (spec == NULL)
                return err_set(err, -ENOMEM, "no memory for the claims of CDI specs");
        (void) text_copy(spec->uid, sizeof(spec->uid), uid);
        spec->written = st.st_mtim;
        return 0;
}

static int find_specs(const char *directory, const struct dra_state *state, struct specs *ret,
                      struct err *err)
{
        DIR *folder = opendir(directory);
        const struct dirent *entry;
        int r = 0;

        if (folder == NULL)
                return errno == ENOENT ? 0 : err_set(err, -errno, "'%s': %m", directory);
        while (r == 0 && (errno = 0, entry = readdir(folder)) != NULL) {
                char uid[DRA_STATE_UID_BYTES];

                if (claim_cdi_is_spec(entry->d_name, uid) && dra_state_find(state, uid) == NULL)
                        r = add_spec(directory, uid, ret, err);
                r = r == -ENOENT ? 0 : r;
        }
        if (r == 0 && errno != 0)
                r = err_set(err, -errno, "'%s': %m", directory);
        (void) closedir(folder);
        if (ret->count > 0)
                qsort(ret->list, ret->count, sizeof(*ret->list), later_first);
        return r;
}

/* What will be no record the next time either. */
static bool is_no_record(int r)
{
        return r == -EBADMSG || r == -EBUSY;
}

static int take_spec(const char *directory, const char *uid, struct dra_state *state, struct text *left,
                     struct err *err)
{
        CLEANUP(free_p) char *bytes = NULL;
        char path[CLAIM_CDI_PATH_BYTES];
        struct err why = { 0 };
        size_t size = 0;
        int r;

        (void) claim_cdi_path(directory, uid, path);
        r = read_file(path, CLAIM_CDI_MAX_BYTES, &bytes, &size, &why);
        if (r == -ENOENT)
                return 0;
        if (r == -E2BIG) /* nobody wrote so long a one; said of the account it is another thing */
                r = -EBADMSG;
        if (r == 0)
                r = claim_record_take(state, uid, bytes, size, &why);
        if (r < 0 && !is_no_record(r))
                return err_set(err, r, "CDI spec '%s': %s", path, why.msg);
        if (r < 0 && left != NULL)
                text_printf(left, "CDI spec '%s': %s\n", path, why.msg);
        return 0;
}

int claim_records_read(const char *directory, struct dra_state *state, struct text *left, struct err *err)
{
        struct specs specs = { .count = 0 };
        int r = find_specs(directory, state, &specs, err);

        for (size_t i = 0; r == 0 && i < specs.count; i++)
                r = take_spec(directory, specs.list[i].uid, state, left, err);
        free(specs.list);
        return r;
}
