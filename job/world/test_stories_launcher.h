/* Rows of test_stories.h's table: an mpirun that is killed, or crashes (launcher_crash.h). */
#pragma once

/* clang-format off */
        { "so is mpirun that is killed", { 0 }, "run 2; end 137; wait 2", "WorldFailed/failed 137" },
        { "mpirun that crashes as it starts is started again, without a restart", { 0 }, "mute all; end 139; wait 2; run 1; good", "LauncherCrashed/restart start Resumed Completed/succeeded 0" },
        { "its ranks, which it takes along, are not at fault", { 0 }, "mute all; end 134; exit 0 137; exit 1 137; wait 2; run 1", "LauncherCrashed/restart start Resumed" },
        { "twice; then it will not start", { 0 }, "mute all; end 139; wait 2; mute all; end 139; wait 2; mute all; end 139; wait 2", "LauncherCrashed/restart start LauncherCrashed/restart start WorldFailed/failed 139" },
        { "a crash takes no restart of the job's away", { .restarts = 1 }, "mute all; end 139; wait 2; run 2; exit 1 1; run 2", "LauncherCrashed/restart start Resumed RankFailed/restart start Resumed" },
        { "a rank that crashes is at fault, and not mpirun, which ends with its code", { 0 }, "mute all; end 139; exit 2 139; wait 2", "RankKilled/failed 139" },
        { "a rank that aborts is no crash of mpirun either, whoever else is blamed", { .restarts = 1 }, "mute all; exit 2 134; exit 0 137; end 134; wait 2", "RankKilled/restart start" },
        { "a crash when steps were made is a fault of the world", { 0 }, "run 2; end 139; wait 2", "WorldFailed/failed 139" },
        { "so is one long after the start of a program that does not say them", { .silent = true }, "mute all; run 61; end 139; wait 2", "WorldFailed/failed 139" },
        { "who kills mpirun means it", { 0 }, "mute all; end 137; wait 2", "WorldFailed/failed 137" },
        /* clang-format on */
