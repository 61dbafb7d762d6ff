from tradewind.cli import main

main()
