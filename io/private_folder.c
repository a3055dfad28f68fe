/* nftw(3), depth first and without following links, and mkdtemp(3) where such folders are made. */
#include "io/private_folder.h"

#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

#define PARENT_BYTES_MAX 40

int private_folder(char *path, size_t size, const char *prefix)
{
        const char *parent = getenv("TMPDIR");
        int r = 0;

        if (parent == NULL || parent[0] != '/' || strlen(parent) > PARENT_BYTES_MAX)
                parent = "/tmp";
        if (!text_format(path, size, "%s/%sXXXXXX", parent, prefix))
                r = -ENAMETOOLONG;
        else if (mkdtemp(path) == NULL)
                r = -errno;
        if (r < 0)
                path[0] = '\0';
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
