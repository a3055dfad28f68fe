/* A connection to a socket that nobody serves is refused at once. */
#include "io/stale_socket.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

bool stale_socket_is(const char *path)
{
        CLEANUP(close_p) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        struct sockaddr_un sa = { .sun_family = AF_UNIX };
        struct stat st;

        return fd >= 0 && text_copy(sa.sun_path, sizeof(sa.sun_path), path) && lstat(path, &st) == 0 &&
               S_ISSOCK(st.st_mode) && connect(fd, (const struct sockaddr *) &sa, sizeof(sa)) < 0 &&
               errno == ECONNREFUSED;
}

void stale_socket_sweep(const char *directory, const char *prefix)
{
        DIR *folder = opendir(directory);
        char path[sizeof(((struct sockaddr_un *) NULL)->sun_path)];
        const struct dirent *entry;

        while (folder != NULL && (entry = readdir(folder)) != NULL)
                if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0 &&
                    text_format(path, sizeof(path), "%s/%s", directory, entry->d_name) &&
                    stale_socket_is(path))
                        (void) unlink(path);
        if (folder != NULL)
                (void) closedir(folder);
}
