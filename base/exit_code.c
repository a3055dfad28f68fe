/* What a negative errno means to whoever runs a program. */
#include "base/exit_code.h"

#include <errno.h>

int exit_code_of(int error)
{
        switch (error) {
        case 0:
                return EXIT_DONE;
        case -ENOENT:
        case -ENODATA:
        case -ENOTDIR:
                return EXIT_NOT_FOUND;
        case -EINVAL:
        case -EBADMSG:
        case -ENOTSUP:
        case -E2BIG:
        case -EISDIR:
        case -EKEYREJECTED:
                return EXIT_USAGE;
        case -EACCES:
        case -EPERM:
                return EXIT_NO_PERMISSION;
        case -ETIMEDOUT:
                return EXIT_TIMED_OUT;
        case -ECONNREFUSED:
        case -EHOSTUNREACH:
        case -ENETUNREACH:
        case -ECONNRESET:
                return EXIT_API_UNREACHABLE;
        case -EINTR:
                return EXIT_INTERRUPTED;
        default:
                return EXIT_FAILED;
        }
}
