/* Failpoint: a named place at which a test build may be killed, as by SIGKILL from outside at that very
 * moment.
 *
 * In a build with -DREMUDA_FAILPOINTS (`make failpoints`) every FAILPOINT puts its name into the section
 * `failpoints` of the program, where tests read the list. The process that reaches the one that
 * REMUDA_FAILPOINT=NAME:FILE names makes FILE and kills itself; where FILE is already, nothing happens: so a
 * program dies there once, whichever of its processes it is, and lives when it is started again. With
 * REMUDA_FAILPOINT_STOPS=1 it stands still there instead, until it is continued. In every other build nothing
 * is left of it, not even the name. */
#pragma once

#ifdef REMUDA_FAILPOINTS
/* @of: of which of several things, asked for by NAME/OF:FILE; NULL = there is one */
void failpoint_reach(const char *name, const char *of);
#define FAILPOINT_TEARS 1 /* so many bytes of a write are made by themselves, behind a failpoint */
#define FAILPOINT_OF(name, of)                                                                               \
        do {                                                                                                 \
                static const char failpoint_name[] __attribute__((section("failpoints"), used)) = name;      \
                failpoint_reach(failpoint_name, of);                                                         \
        } while (0)
#else
#define FAILPOINT_OF(name, of) ((void) 0)
#define FAILPOINT_TEARS        0
#endif
#define FAILPOINT(name) FAILPOINT_OF(name, NULL)
