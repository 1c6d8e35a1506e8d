"""secondlook: decide batches when only the accepted show their outcome."""
