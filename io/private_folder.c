/* nftw(3), depth first and without following links; random names where such folders are made. */
#include "io/private_folder.h"

#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

#define PARENT_BYTES_MAX 40

int private_folder_name(char *path, size_t size, const char *prefix)
{
        const char *parent = getenv("TMPDIR");
        unsigned long long random = 0;
        int r = 0;

        if (parent == NULL || parent[0] != '/' || strlen(parent) > PARENT_BYTES_MAX)
                parent = "/tmp";
        if (getrandom(&random, 5, 0) != 5)
                r = -EIO;
        else if (!text_format(path, size, "%s/%s%010llx", parent, prefix, random))
                r = -ENAMETOOLONG;
        if (r < 0)
                path[0] = '\0';
        return r;
}

int private_folder(char *path, size_t size, const char *prefix)
{
        int r = private_folder_name(path, size, prefix);

        if (r == 0 && mkdir(path, 0700) < 0) {
                r = -errno;
                path[0] = '\0';
        }
        return r;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *where)
{
        (void) status;
        (void) where;
        (void) (kind == FTW_DP || kind == FTW_D ? rmdir(path) : unlink(path));
        return 0;
}

void private_folder_remove(const char *path, const char *prefix)
{
        const char *name = strrchr(path, '/');

        if (path[0] == '/' && name != NULL && text_starts_with(name + 1, prefix))
                (void) nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
