from tests.cloud.faces.kubernetes.server import main

main()
