"""From the start of a process to its first request of Lambda's runtime API: STARTS PROGRAM...

The programs take turns. The first start of each, which may read it from disk, is not counted.
"""

import os
import socket
import statistics
import subprocess
import sys
import time


def milliseconds(program, listener):
    settings = {
        "AWS_LAMBDA_RUNTIME_API": "127.0.0.1:%d" % listener.getsockname()[1],
        "AWS_LAMBDA_FUNCTION_NAME": "charge",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "128",
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_LOG_STREAM_NAME": "log",
        "AWS_LAMBDA_LOG_GROUP_NAME": "logs",
        "AWS_REGION": "eu-central-1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "LEASES_TABLE": "leases",
        "LEDGER_TABLE": "ledger",
    }
    begun = time.perf_counter()
    process = subprocess.Popen([program], env=settings, stdout=subprocess.DEVNULL)
    try:
        connection, _ = listener.accept()
        with connection:
            asked = connection.recv(4096)
            took = time.perf_counter() - begun
            assert b"/runtime/invocation/next" in asked, asked
            process.kill()  # before it sees the connection close, and says so
    finally:
        process.kill()
        process.wait()
    return took * 1000


def main():
    starts, programs = int(sys.argv[1]), sys.argv[2:]
    taken = {program: [] for program in programs}
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(30)
        for start in range(starts + 1):
            for program in programs:
                took = milliseconds(program, listener)
                if start > 0:
                    taken[program].append(took)
    for program, times in taken.items():
        low, median, high = min(times), statistics.median(times), max(times)
        print("%-16s %6.1f ms median of %d starts (%.1f to %.1f)" % (os.path.basename(program), median, starts, low, high))


main()
