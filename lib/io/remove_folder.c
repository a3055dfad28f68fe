#include "io/remove_folder.h"

#include <ftw.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *where)
{
        (void) status;
        (void) where;
        (void) (kind == FTW_DP || kind == FTW_D ? rmdir(path) : unlink(path));
        return 0;
}

void remove_folder(const char *path, const char *prefix)
{
        const char *name = strrchr(path, '/');

        if (path[0] == '/' && name != NULL && text_starts_with(name + 1, prefix))
                (void) nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
