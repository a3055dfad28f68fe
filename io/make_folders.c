/* Make folders: one after the other, from the top; what is there already stays. */
#include "io/make_folders.h"

#include <string.h>
#include <sys/stat.h>

#include "base/text.h"

void make_folders(const char *path)
{
        char part[1024];

        if (!text_copy(part, sizeof(part), path))
                return;
        for (char *s = strchr(part + 1, '/'); s != NULL; s = strchr(s + 1, '/')) {
                *s = '\0';
                (void) mkdir(part, 0755);
                *s = '/';
        }
}
